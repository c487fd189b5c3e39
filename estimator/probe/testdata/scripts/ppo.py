"""PPO: a policy with convolutions plays an environment that is made up, and learns from what it has seen."""
import numpy as np
import torch
from torch import nn
from torch.distributions import Categorical


class Environment:
    def __init__(self):
        self.rng, self.time = np.random.default_rng(1), 0

    def reset(self):
        self.time = 0
        return self.rng.random((4, 84, 84), dtype=np.float32)

    def step(self, action):
        self.time += 1
        return self.rng.random((4, 84, 84), dtype=np.float32), float(action == self.time % 6), self.time >= 20


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(),
                                  nn.Flatten(), nn.Linear(3136, 512), nn.ReLU())
        self.actor, self.critic = nn.Linear(512, 6), nn.Linear(512, 1)

    def forward(self, x):
        h = self.body(x)
        return Categorical(logits=self.actor(h)), self.critic(h).squeeze(-1)


policy = Policy().cuda()
optimizer = torch.optim.Adam(policy.parameters(), lr=2.5e-4, eps=1e-5)
games = [Environment() for _ in range(8)]
seen = torch.tensor(np.stack([g.reset() for g in games])).cuda()
for update in range(10):
    states, actions, logs, rewards, values = [], [], [], [], []
    for _ in range(32):
        with torch.no_grad():
            choice, value = policy(seen)
            action = choice.sample()
        states.append(seen), actions.append(action), logs.append(choice.log_prob(action)), values.append(value)
        results = [g.step(a) for g, a in zip(games, action.cpu().numpy())]
        rewards.append(torch.tensor([r for _, r, _ in results]).cuda())
        seen = torch.tensor(np.stack([g.reset() if done else s for g, (s, _, done) in zip(games, results)])).cuda()
    gains, total = [], torch.zeros(8).cuda()
    for reward in reversed(rewards):
        total = reward + 0.99 * total
        gains.insert(0, total)
    states, actions, logs, gains, values = (torch.cat(v) for v in (states, actions, logs, gains, values))
    better = gains - values
    better = (better - better.mean()) / (better.std() + 1e-8)
    for part in torch.randperm(256).split(64):
        choice, value = policy(states[part])
        ratio = (choice.log_prob(actions[part]) - logs[part]).exp()
        loss = -torch.min(ratio * better[part], ratio.clamp(0.9, 1.1) * better[part]).mean()
        loss = loss + 0.5 * (value - gains[part]).pow(2).mean() - 0.01 * choice.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
        optimizer.step()
    print(update, loss.item(), float(torch.stack(rewards).sum()))
