"""Boxes as (x1, y1, x2, y2) in pixels: anchors, overlaps, offsets, and features cut out of a pyramid."""

import math

import torch
import torch.nn.functional as F

STRIDES = (4, 8, 16, 32, 64)
SIDES = (32, 64, 128, 256, 512)
RATIOS = (0.5, 1.0, 2.0)


def anchors(levels):
    """Three boxes around each cell of each level, in the order of their scores."""
    made = []
    for feature, stride, side in zip(levels, STRIDES, SIDES):
        h, w = feature.shape[-2:]
        y, x = torch.meshgrid(torch.arange(h, device=feature.device), torch.arange(w, device=feature.device), indexing="ij")
        centre = torch.stack([x, y, x, y], -1).float().view(-1, 1, 4) * stride
        half = [(side / math.sqrt(r) / 2, side * math.sqrt(r) / 2) for r in RATIOS]
        shape = torch.tensor([(-a, -b, a, b) for a, b in half], device=feature.device)
        made.append((centre + shape).view(-1, 4))
    return torch.cat(made)


def overlap(a, b):
    """Intersection over union of all pairs: (len(a), len(b))."""
    corner = torch.max(a[:, None, :2], b[None, :, :2])
    size = (torch.min(a[:, None, 2:], b[None, :, 2:]) - corner).clamp(min=0)
    both = size[..., 0] * size[..., 1]

    def area(boxes):
        return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])

    return both / (area(a)[:, None] + area(b)[None] - both).clamp(min=1e-6)


def offsets(boxes, targets):
    """The offsets from boxes to targets: the centre in sides, the side in logarithms."""
    size, aim = (boxes[:, 2:] - boxes[:, :2]).clamp(min=1.0), (targets[:, 2:] - targets[:, :2]).clamp(min=1.0)
    return torch.cat([(targets[:, :2] + aim / 2 - boxes[:, :2] - size / 2) / size, (aim / size).log()], 1)


def moved(boxes, by, width, height):
    """The inverse of offsets, cut to the image."""
    size = boxes[:, 2:] - boxes[:, :2]
    centre = boxes[:, :2] + size / 2 + by[:, :2] * size
    half = size * by[:, 2:].clamp(max=4.0).exp() / 2
    out = torch.cat([centre - half, centre + half], 1)
    return torch.minimum(out.clamp(min=0), out.new_tensor([width, height, width, height]))


def sample(positive, negative, number, share):
    """Indices of at most number boxes, at most share of them positive, drawn at random."""
    p, n = torch.nonzero(positive).flatten(), torch.nonzero(negative).flatten()
    p = p[torch.randperm(len(p))[:int(number * share)].to(p.device)]
    n = n[torch.randperm(len(n))[:number - len(p)].to(n.device)]
    return p, n


def crop(levels, boxes, size):
    """size x size features of each box: four points a cell out of the level that fits its area, averaged.

    boxes is a list, the boxes of each image; the result is in the boxes' order."""
    out = [None] * sum(map(len, boxes))
    first = 0
    for image, of in enumerate(boxes):
        side = ((of[:, 2] - of[:, 0]) * (of[:, 3] - of[:, 1])).clamp(min=1.0).sqrt()
        level = (4 + torch.log2(side / 224)).floor().clamp(2, 1 + len(levels)).long() - 2
        for k, feature in enumerate(levels):
            mine = torch.nonzero(level == k).flatten()
            if len(mine):
                cut = _cut(feature[image:image + 1], of[mine] / STRIDES[k], 2 * size)
                for i, c in zip(mine.tolist(), F.avg_pool2d(cut, 2)):
                    out[first + i] = c
        first += len(of)
    if not out:
        return levels[0].new_zeros(0, levels[0].shape[1], size, size)
    return torch.stack(out)


def _cut(feature, boxes, n):
    """n x n points of each box of one image's (1, channels, h, w)."""
    h, w = feature.shape[-2:]
    at = (torch.arange(n, device=boxes.device) + 0.5) / n
    x = (boxes[:, 0:1] + at * (boxes[:, 2:3] - boxes[:, 0:1])) * 2 / w - 1
    y = (boxes[:, 1:2] + at * (boxes[:, 3:4] - boxes[:, 1:2])) * 2 / h - 1
    grid = torch.stack([x[:, None, :].expand(-1, n, n), y[:, :, None].expand(-1, n, n)], -1)
    # In single precision: a narrower type cannot store a pixel's place exactly.
    cut = F.grid_sample(feature.float(), grid.reshape(1, -1, n, 2).float(), align_corners=False).to(feature.dtype)
    return cut[0].view(feature.shape[1], len(boxes), n, n).transpose(0, 1)
