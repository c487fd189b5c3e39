"""Samples and losses, by kind of model."""

import torch
import torch.nn.functional as F

OBJECTS = 7  # objects of a picture, about the mean of COCO
IGNORED = -100


class Task:
    """Makes random samples of a shape and computes the loss.

    A batch is a tuple of tensors with the samples as first dimension; the first tensor is the input."""

    def __init__(self, model, dataset, classes, size):
        self.kind, self.classes, self.size = model.kind, classes, size
        self.channels, self.vocabulary = dataset.channels, model.vocabulary

    def sample(self, generator, n, device="cpu"):
        """n samples drawn by the generator, which must be on the device."""
        return getattr(self, "_" + self.kind)(_Draw(generator, n, device))

    def loss(self, net, batch):
        x = batch[0]
        if self.kind == "objects":
            return net(*batch)
        if self.kind == "clicks":
            return F.binary_cross_entropy_with_logits(net(x, batch[1]).float(), batch[2])
        logits = net(x)
        if self.kind == "next":
            return F.cross_entropy(logits[:, :-1].reshape(-1, logits.shape[-1]).float(), batch[1][:, 1:].reshape(-1), ignore_index=IGNORED)
        if self.kind == "masked":
            return F.cross_entropy(logits.view(-1, logits.shape[-1]).float(), batch[1].view(-1), ignore_index=IGNORED)
        return F.cross_entropy(logits.float(), batch[1])

    def _image(self, draw):
        return draw.normal(self.channels, self.size, self.size), draw.whole(self.classes)

    def _segments(self, draw):
        return draw.normal(3, self.size, self.size), draw.whole(self.classes, self.size, self.size)

    def _clicks(self, draw):
        from .networks.dlrm import TABLES

        rows = torch.cat([draw.whole(n, 1) for n in TABLES], 1)
        return draw.normal(13), rows, draw.whole(2).float()

    def _masked(self, draw):
        tokens = draw.whole(self.vocabulary, self.size)
        return masked(tokens, draw.uniform(self.size))

    def _next(self, draw):
        tokens = draw.whole(self.vocabulary, self.size)
        return tokens, tokens

    def _sequence(self, draw):
        return draw.whole(self.vocabulary, self.size), draw.whole(self.classes)

    def _objects(self, draw):
        """Boxes of an eighth to a half of the image, each filled by its mask."""
        h, w = detector_size(self.size)
        images = draw.normal(3, h, w)
        place, extent = draw.uniform(OBJECTS, 2), draw.uniform(OBJECTS, 2) * 0.375 + 0.125
        side = torch.tensor([w, h], device=images.device)
        corner = place * (1 - extent) * side
        boxes = torch.cat([corner, corner + extent * side], 2)
        y, x = torch.arange(h, device=images.device)[:, None], torch.arange(w, device=images.device)
        b = boxes[..., None, None]
        masks = (x >= b[:, :, 0]) & (x < b[:, :, 2]) & (y >= b[:, :, 1]) & (y < b[:, :, 3])
        return images, boxes, 1 + draw.whole(self.classes - 1, OBJECTS), masks.to(torch.uint8)


class _Draw:
    def __init__(self, generator, n, device):
        self.generator, self.n, self.device = generator, n, device

    def normal(self, *shape):
        return torch.randn(self.n, *shape, generator=self.generator, device=self.device)

    def uniform(self, *shape):
        return torch.rand(self.n, *shape, generator=self.generator, device=self.device)

    def whole(self, below, *shape):
        return torch.randint(below, (self.n, *shape), generator=self.generator, device=self.device)


def masked(tokens, chance):
    """Replaces 15 % of the tokens, which the model must predict, by token 1 (Devlin et al. 2019, without exceptions)."""
    hidden = chance < 0.15
    return tokens.masked_fill(hidden, 1), tokens.masked_fill(~hidden, IGNORED)


def detector_size(short):
    """Height and width of a picture of 800 x 1333 scaled to a short side, both padded to multiples of 32."""
    return tuple((n + 31) // 32 * 32 for n in (short, short * 1333 // 800))
