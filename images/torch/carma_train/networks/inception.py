"""Inception v3 (Szegedy et al. 2016), without its side classifier, and Xception (Chollet 2017)."""

import torch
from torch import nn

from .layers import conv_norm


def _conv(before, out, kernel=1, stride=1, pad=None):
    return conv_norm(before, out, kernel, stride, pad=pad, eps=1e-3)


def _chain(before, *steps):
    """Convolutions one after the other: (out, kernel[, stride, pad])."""
    parts = []
    for step in steps:
        parts.append(_conv(before, *step))
        before = step[0]
    return nn.Sequential(*parts)


class Branches(nn.Module):
    def __init__(self, *branches):
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x):
        return torch.cat([b(x) for b in self.branches], 1)


def _averaged(before, out):
    return nn.Sequential(nn.AvgPool2d(3, 1, 1), _conv(before, out))


def _a(before, pooled):
    return Branches(_conv(before, 64), _chain(before, (48, 1), (64, 5)), _chain(before, (64, 1), (96, 3), (96, 3)), _averaged(before, pooled))


def _b(before):
    return Branches(_conv(before, 384, 3, 2, 0), _chain(before, (64, 1), (96, 3), (96, 3, 2, 0)), nn.MaxPool2d(3, 2))


def _c(before, n):
    across, down = (1, 7), (7, 1)
    return Branches(_conv(before, 192), _chain(before, (n, 1), (n, across), (192, down)),
                    _chain(before, (n, 1), (n, down), (n, across), (n, down), (192, across)), _averaged(before, 192))


def _d(before):
    return Branches(_chain(before, (192, 1), (320, 3, 2, 0)), _chain(before, (192, 1), (192, (1, 7)), (192, (7, 1)), (192, 3, 2, 0)),
                    nn.MaxPool2d(3, 2))


def _e(before):
    def fork():
        return Branches(_conv(384, 384, (1, 3)), _conv(384, 384, (3, 1)))

    return Branches(_conv(before, 320), nn.Sequential(_conv(before, 384), fork()),
                    nn.Sequential(_chain(before, (448, 1), (384, 3)), fork()), _averaged(before, 192))


def inception_v3(classes):
    return nn.Sequential(
        _chain(3, (32, 3, 2, 0), (32, 3, 1, 0), (64, 3)), nn.MaxPool2d(3, 2),
        _chain(64, (80, 1), (192, 3, 1, 0)), nn.MaxPool2d(3, 2),
        _a(192, 32), _a(256, 64), _a(288, 64), _b(288), _c(768, 128), _c(768, 160), _c(768, 160), _c(768, 192),
        _d(768), _e(1280), _e(2048), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.5), nn.Linear(2048, classes))


def _separable(before, out):
    return [nn.Conv2d(before, before, 3, padding=1, groups=before, bias=False), nn.Conv2d(before, out, 1, bias=False), nn.BatchNorm2d(out)]


class Block(nn.Module):
    def __init__(self, before, outs, shrinks, first):
        super().__init__()
        parts, n = [], before
        for i, out in enumerate(outs):
            if i or not first:
                parts.append(nn.ReLU(inplace=i > 0))  # the shortcut needs the block's input too
            parts += _separable(n, out)
            n = out
        if shrinks:
            parts.append(nn.MaxPool2d(3, 2, 1))
        self.body = nn.Sequential(*parts)
        self.skip = conv_norm(before, n, stride=2, act=None) if shrinks else None

    def forward(self, x):
        y = self.body(x)
        y += x if self.skip is None else self.skip(x)
        return y


def xception(classes):
    parts, before = [conv_norm(3, 32, 3, 2, pad=0), conv_norm(32, 64, 3, pad=0)], 64
    blocks = [((128, 128), True), ((256, 256), True), ((728, 728), True)] + [((728, 728, 728), False)] * 8 + [((728, 1024), True)]
    for i, (outs, shrinks) in enumerate(blocks):
        parts.append(Block(before, outs, shrinks, i == 0))
        before = outs[-1]
    for out in (1536, 2048):
        parts += _separable(before, out) + [nn.ReLU(inplace=True)]
        before = out
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, classes))
