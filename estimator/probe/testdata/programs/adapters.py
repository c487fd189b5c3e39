"""Adapters beside frozen weights. Time is up in the forward pass or before the first step, as its argument says."""
import sys

import torch
from torch import nn

time_is_up = sys.modules["carma_probe"]._too_late


class Block(nn.Module):
    def __init__(self, stops):
        super().__init__()
        self.base, self.down, self.up = nn.Linear(100, 100), nn.Linear(100, 4, bias=False), nn.Linear(4, 100, bias=False)
        self.base.weight.requires_grad_(False)  # its bias is trained
        self.stops = stops

    def forward(self, x):
        x = self.base(x) + self.up(self.down(x))
        if self.stops:
            time_is_up()
        return x


where = sys.argv[1]
net = nn.Sequential(*(Block(where == "forward" and i == 1) for i in range(4)), nn.Linear(100, 1000)).cuda()
net[4].requires_grad_(False)
net[4].unused_frozen, net[4].unused_trained = nn.Linear(10, 30).requires_grad_(False), nn.Linear(10, 7)
loss = net(torch.zeros(8, 100, device="cuda")).sum()
time_is_up()
