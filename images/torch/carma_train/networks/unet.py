"""U-Net (Ronneberger et al. 2015) over a ResNet-34; its decoder doubles the image five times."""

import torch
import torch.nn.functional as F
from torch import nn

from .layers import conv_norm
from .resnet import Stages


class UNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.encoder = Stages(34)
        widths = self.encoder.widths
        before, self.decoder = widths[-1], nn.ModuleList()
        for i, out in enumerate((256, 128, 64, 32, 16)):
            skip = widths[3 - i] if i < 4 else 0
            self.decoder.append(nn.Sequential(conv_norm(before + skip, out, 3), conv_norm(out, out, 3)))
            before = out
        self.head = nn.Conv2d(before, classes, 3, padding=1)

    def forward(self, x):
        *skips, x = self.encoder(x)
        for block in self.decoder:
            x = F.interpolate(x, scale_factor=2.0, mode="nearest")
            x = block(torch.cat([x, skips.pop()], 1) if skips else x)
        return self.head(x)
