"""A recurrent network, its batch second; RMSprop; clipped."""
import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 12)
        self.lstm = nn.LSTM(12, 20, num_layers=2)
        self.out = nn.Linear(20, 5)

    def forward(self, ids):
        hidden, _ = self.lstm(self.embed(ids))
        return nn.functional.log_softmax(self.out(hidden), dim=-1)


net = Tagger().cuda()
optimizer = torch.optim.RMSprop(net.parameters())
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
data = torch.utils.data.DataLoader([(torch.randint(0, 30, (9,)), torch.randint(0, 5, (9,))) for _ in range(32)], batch_size=6,
                                   collate_fn=lambda b: (torch.stack([x for x, _ in b], 1), torch.stack([y for _, y in b], 1)))
for ids, tags in data:
    optimizer.zero_grad()
    out = net(ids.to("cuda"))
    loss = nn.functional.nll_loss(out.view(-1, 5), tags.cuda().view(-1))
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
print("trained to the end", loss.item())
