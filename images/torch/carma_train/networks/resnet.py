"""ResNet (He et al. 2016). The stride of a bottleneck is in its 3 x 3 convolution."""

import torch
from torch import nn

from .layers import conv_norm

DEPTHS = {18: ((2, 2, 2, 2), False), 34: ((3, 4, 6, 3), False), 50: ((3, 4, 6, 3), True)}


class Residual(nn.Module):
    def __init__(self, before, width, stride, bottleneck):
        super().__init__()
        self.out = 4 * width if bottleneck else width
        if bottleneck:
            self.body = nn.Sequential(conv_norm(before, width), conv_norm(width, width, 3, stride), conv_norm(width, self.out, act=None))
        else:
            self.body = nn.Sequential(conv_norm(before, width, 3, stride), conv_norm(width, width, 3, act=None))
        self.skip = None if stride == 1 and before == self.out else conv_norm(before, self.out, stride=stride, act=None)

    def forward(self, x):
        y = self.body(x)
        y += x if self.skip is None else self.skip(x)
        return torch.relu_(y)


class Stages(nn.Module):
    """The convolutions. Returns the outputs of the stem and of the four stages, which have `widths` channels."""

    def __init__(self, depth):
        super().__init__()
        repeats, bottleneck = DEPTHS[depth]
        self.stem = conv_norm(3, 64, 7, 2)
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.stages, self.widths = nn.ModuleList(), [64]
        for i, n in enumerate(repeats):
            blocks = []
            for j in range(n):
                before = blocks[-1].out if blocks else self.widths[-1]
                blocks.append(Residual(before, 64 << i, 2 if i and not j else 1, bottleneck))
            self.stages.append(nn.Sequential(*blocks))
            self.widths.append(blocks[-1].out)

    def forward(self, x):
        made = [self.stem(x)]
        x = self.pool(made[0])
        for stage in self.stages:
            x = stage(x)
            made.append(x)
        return made


class ResNet(nn.Module):
    def __init__(self, depth, classes):
        super().__init__()
        self.features = Stages(depth)
        self.fc = nn.Linear(self.features.widths[-1], classes)

    def forward(self, x):
        return self.fc(self.features(x)[-1].mean((2, 3)))
