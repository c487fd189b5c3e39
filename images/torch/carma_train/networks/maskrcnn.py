"""Mask R-CNN (He et al. 2017) over a ResNet-50 with a feature pyramid, batch norms trained.

It has the layers and losses of torchvision's network, but is simpler between them. It takes the best-scored
proposals without suppressing overlapping ones. It cuts out features by grid_sample, which keeps more memory
than torchvision's kernel. It is only for images without torchvision.
"""

import torch
import torch.nn.functional as F
from torch import nn

from .boxes import anchors, crop, moved, offsets, overlap, sample
from .resnet import Stages

PROPOSALS = 1000


class Pyramid(nn.Module):
    def __init__(self, widths):
        super().__init__()
        self.inner = nn.ModuleList(nn.Conv2d(w, 256, 1) for w in widths)
        self.outer = nn.ModuleList(nn.Conv2d(256, 256, 3, padding=1) for _ in widths)

    def forward(self, stages):
        levels, coarse = [], None
        for inner, outer, x in reversed(list(zip(self.inner, self.outer, stages))):
            x = inner(x)
            if coarse is not None:
                x = x + F.interpolate(coarse, size=x.shape[-2:], mode="nearest")
            coarse = x
            levels.insert(0, outer(x))
        return levels + [F.max_pool2d(levels[-1], 1, 2)]


class Proposer(nn.Module):
    """Scores and moves the anchors."""

    def __init__(self):
        super().__init__()
        self.conv, self.score, self.move = nn.Conv2d(256, 256, 3, padding=1), nn.Conv2d(256, 3, 1), nn.Conv2d(256, 12, 1)

    def forward(self, levels):
        scores, moves = [], []
        for level in levels:
            x = F.relu_(self.conv(level))
            scores.append(self.score(x).permute(0, 2, 3, 1).flatten(1))
            moves.append(self.move(x).permute(0, 2, 3, 1).reshape(len(x), -1, 4))
        return torch.cat(scores, 1).float(), torch.cat(moves, 1).float()


class MaskRCNN(nn.Module):
    def __init__(self, classes, regions=512):
        super().__init__()
        self.regions = regions
        self.backbone = Stages(50)
        self.pyramid, self.proposer = Pyramid(self.backbone.widths[1:]), Proposer()
        self.box = nn.Sequential(nn.Flatten(), nn.Linear(256 * 49, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU())
        self.kind, self.place = nn.Linear(1024, classes), nn.Linear(1024, 4 * classes)
        convs = [part for _ in range(4) for part in (nn.Conv2d(256, 256, 3, padding=1), nn.ReLU(inplace=True))]
        self.mask = nn.Sequential(*convs, nn.ConvTranspose2d(256, 256, 2, 2), nn.ReLU(inplace=True), nn.Conv2d(256, classes, 1))

    def forward(self, images, boxes, labels, masks):
        """images: (batch, 3, h, w); of each image boxes (n, 4), labels (n) from 1 and masks (n, h, w). Returns the loss."""
        levels = self.pyramid(self.backbone(images)[1:])
        scores, moves = self.proposer(levels)
        around = anchors(levels)
        h, w = images.shape[-2:]
        loss, regions, found = 0.0, [], []
        for i, truth in enumerate(boxes):
            loss = loss + self.propose_loss(scores[i], moves[i], around, truth)
            with torch.no_grad():
                best = scores[i].topk(min(PROPOSALS, len(around))).indices
                proposed = torch.cat([moved(around[best], moves[i][best], w, h), truth])
                match = overlap(proposed, truth).max(1)
                p, n = sample(match.values >= 0.5, match.values < 0.5, self.regions, 0.25)
                regions.append((proposed[p], proposed[n]))
                found.append(match.indices[p])
        loss = loss / len(boxes) + self.box_loss(levels[:4], regions, found, boxes, labels)
        return loss + self.mask_loss(levels[:4], [p for p, _ in regions], found, labels, masks)

    def propose_loss(self, scores, moves, around, truth):
        iou = overlap(around, truth)
        match = iou.max(1)
        positive = (match.values >= 0.7) | (iou == iou.max(0).values.clamp(min=1e-6)).any(1)
        p, n = sample(positive, (match.values < 0.3) & ~positive, 256, 0.5)
        both = torch.cat([p, n])
        aim = torch.zeros(len(both), device=scores.device)
        aim[:len(p)] = 1.0
        loss = F.binary_cross_entropy_with_logits(scores[both], aim)
        away = F.smooth_l1_loss(moves[p], offsets(around[p], truth[match.indices[p]]), beta=1 / 9, reduction="sum")
        return loss + away / max(len(both), 1)

    def box_loss(self, levels, regions, found, boxes, labels):
        x = self.box(crop(levels, [torch.cat(r) for r in regions], 7))
        kinds, places = self.kind(x).float(), self.place(x).float()
        aim, loss, first = torch.zeros(len(x), dtype=torch.long, device=x.device), 0.0, 0
        for (p, n), of, truth, label in zip(regions, found, boxes, labels):
            rows = torch.arange(first, first + len(p), device=x.device)
            aim[rows] = label[of]
            mine = places[rows].view(len(p), -1, 4)[torch.arange(len(p), device=x.device), label[of]]
            loss = loss + F.smooth_l1_loss(mine, offsets(p, truth[of]), beta=1 / 9, reduction="sum")
            first += len(p) + len(n)
        return F.cross_entropy(kinds, aim) + loss / max(len(x), 1)

    def mask_loss(self, levels, regions, found, labels, masks):
        logits = self.mask(crop(levels, regions, 14)).float()
        kinds = torch.cat([label[of] for label, of in zip(labels, found)])
        with torch.no_grad():
            aims = [self.outline(p, mask[of]) for p, of, mask in zip(regions, found, masks)]
        mine = logits[torch.arange(len(logits), device=logits.device), kinds]
        return F.binary_cross_entropy_with_logits(mine, torch.cat(aims)) if len(mine) else logits.sum()

    @staticmethod
    def outline(regions, masks):
        """28 x 28 points of each region's mask."""
        h, w = masks.shape[-2:]
        at = (torch.arange(28, device=regions.device) + 0.5) / 28
        x = ((regions[:, 0:1] + at * (regions[:, 2:3] - regions[:, 0:1]))).long().clamp(0, w - 1)
        y = ((regions[:, 1:2] + at * (regions[:, 3:4] - regions[:, 1:2]))).long().clamp(0, h - 1)
        i = torch.arange(len(regions), device=regions.device)[:, None, None]
        return masks[i, y[:, :, None], x[:, None, :]].float()
