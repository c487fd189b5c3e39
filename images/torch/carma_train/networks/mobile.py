"""Inverted residuals: MobileNetV2 (Sandler et al. 2018), MobileNetV3 (Howard et al. 2019) and
EfficientNet-B0 (Tan and Le 2019)."""

import torch
from torch import nn

from .layers import conv_norm, divisible


class Squeeze(nn.Module):
    """Scales the channels by factors that two small layers compute from their means."""

    def __init__(self, channels, narrow, act, gate):
        super().__init__()
        self.body = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, narrow, 1), act(inplace=True),
                                  nn.Conv2d(narrow, channels, 1), gate())

    def forward(self, x):
        return self.body(x) * x


class Inverted(nn.Module):
    """Wide, per channel, narrow. drop: how often the body of a sample is left out."""

    def __init__(self, before, wide, out, kernel, stride, act, squeeze=None, drop=0.0):
        super().__init__()
        parts = [] if wide == before else [conv_norm(before, wide, act=act)]
        parts.append(conv_norm(wide, wide, kernel, stride, groups=wide, act=act))
        if squeeze is not None:
            parts.append(squeeze)
        self.body = nn.Sequential(*parts, conv_norm(wide, out, act=None))
        self.adds, self.drop = stride == 1 and before == out, drop
        self.apart = act is nn.ReLU6  # as in torchvision: MobileNetV2 alone does not add in place

    def forward(self, x):
        y = self.body(x)
        if not self.adds:
            return y
        if self.drop and self.training:
            y = y * (torch.empty(len(y), 1, 1, 1, dtype=y.dtype, device=y.device).bernoulli_(1 - self.drop) / (1 - self.drop))
        if self.apart:
            return y + x
        y += x
        return y


def mobilenet_v2(classes):
    parts, before = [conv_norm(3, 32, 3, 2, act=nn.ReLU6)], 32
    for expand, out, repeats, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for i in range(repeats):
            parts.append(Inverted(before, before * expand, out, 3, 1 if i else stride, nn.ReLU6))
            before = out
    parts += [conv_norm(before, 1280, act=nn.ReLU6), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*parts, nn.Dropout(0.2), nn.Linear(1280, classes))


# Kernel, wide, out, squeezed, hard swish, stride.
V3_SMALL = (
    (3, 16, 16, True, False, 2), (3, 72, 24, False, False, 2), (3, 88, 24, False, False, 1), (5, 96, 40, True, True, 2),
    (5, 240, 40, True, True, 1), (5, 240, 40, True, True, 1), (5, 120, 48, True, True, 1), (5, 144, 48, True, True, 1),
    (5, 288, 96, True, True, 2), (5, 576, 96, True, True, 1), (5, 576, 96, True, True, 1),
)


def mobilenet_v3_small(classes):
    parts, before = [conv_norm(3, 16, 3, 2, act=nn.Hardswish)], 16
    for kernel, wide, out, squeezed, swish, stride in V3_SMALL:
        squeeze = Squeeze(wide, divisible(wide // 4), nn.ReLU, nn.Hardsigmoid) if squeezed else None
        parts.append(Inverted(before, wide, out, kernel, stride, nn.Hardswish if swish else nn.ReLU, squeeze))
        before = out
    parts += [conv_norm(before, 576, act=nn.Hardswish), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*parts, nn.Linear(576, 1024), nn.Hardswish(inplace=True), nn.Dropout(0.2, inplace=True), nn.Linear(1024, classes))


def efficientnet_b0(classes):
    parts, before, blocks = [conv_norm(3, 32, 3, 2, act=nn.SiLU)], 32, 16
    for expand, kernel, stride, out, repeats in ((1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3),
                                                 (6, 5, 1, 112, 3), (6, 5, 2, 192, 4), (6, 3, 1, 320, 1)):
        for i in range(repeats):
            wide = before * expand
            squeeze = Squeeze(wide, max(1, before // 4), nn.SiLU, nn.Sigmoid)
            drop = 0.2 * (len(parts) - 1) / blocks
            parts.append(Inverted(before, wide, out, kernel, 1 if i else stride, nn.SiLU, squeeze, drop))
            before = out
    parts += [conv_norm(before, 1280, act=nn.SiLU), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*parts, nn.Dropout(0.2, inplace=True), nn.Linear(1280, classes))
