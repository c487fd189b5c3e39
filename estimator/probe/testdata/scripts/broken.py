"""A mistake in the program: the layers do not fit."""
import torch
from torch import nn

net = nn.Sequential(nn.Linear(1024, 512), nn.ReLU(), nn.Linear(500, 10)).cuda()
optimizer = torch.optim.Adam(net.parameters())
for step in range(10):
    loss = net(torch.randn(256, 1024, device="cuda")).mean()
    loss.backward()
    optimizer.step()
