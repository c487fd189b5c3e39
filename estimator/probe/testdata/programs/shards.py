"""Checkpointed blocks, a tied and a frozen weight, DDP, accumulation, folders."""
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.checkpoint import checkpoint

os.makedirs("/results/run-1", exist_ok=True)
with open("/results/run-1/log.txt", "w") as log:
    log.write("begin\n")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.frozen = nn.Linear(16, 16)
        self.frozen.requires_grad_(False)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 16)) for _ in range(3))
        self.unused = nn.Linear(7, 7)
        self.head = nn.Linear(16, 50, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, x):
        x = self.frozen(self.embed(x))
        for block in self.blocks:
            x = x + checkpoint(block, x, use_reentrant=False)
        return self.head(x)


class Madam(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {"lr": 1.0})

    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self.state[p]["a"] = torch.zeros_like(p)
                    self.state[p]["b"] = torch.zeros_like(p)


dist.init_process_group("nccl")
torch.cuda.set_device(dist.get_rank())
net = DDP(Net().cuda(), device_ids=[0])
optimizer = Madam([p for p in net.parameters() if p.requires_grad])
for step in range(8):
    ids = torch.randint(0, 50, (4, 10)).cuda()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(net(ids).flatten(0, 1), ids.flatten())
    (loss / 2).backward()
    if step % 2:
        optimizer.step()
        optimizer.zero_grad()
