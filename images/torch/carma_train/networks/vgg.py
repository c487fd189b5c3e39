"""VGG-16 (Simonyan and Zisserman 2015), without batch norm."""

from torch import nn


def vgg16(classes):
    parts, before = [], 3
    for i, n in enumerate((2, 2, 3, 3, 3)):
        out = min(64 << i, 512)
        for _ in range(n):
            parts += [nn.Conv2d(before, out, 3, padding=1), nn.ReLU(inplace=True)]
            before = out
        parts.append(nn.MaxPool2d(2))
    parts += [nn.AdaptiveAvgPool2d(7), nn.Flatten()]
    for before in (512 * 7 * 7, 4096):
        parts += [nn.Linear(before, 4096), nn.ReLU(inplace=True), nn.Dropout(0.5)]
    return nn.Sequential(*parts, nn.Linear(4096, classes))
