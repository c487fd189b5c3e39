"""A trained network scores images: no training at all."""
import torch
from torch import nn

net = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 1000)).cuda().eval()
with torch.inference_mode():
    for batch in torch.utils.data.DataLoader(torch.randn(64, 3, 128, 128), batch_size=16):
        print(net(batch.cuda()).softmax(-1).max(-1))
