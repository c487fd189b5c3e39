"""Torchvision's detection networks for dense_steps.py, with the sizes that depend on the images.

These are assumed: OBJECTS objects in an image; PROPOSALS boxes are left by the suppression of overlapping ones, as many
as the library takes; of the 256 anchors that the first stage learns from ANCHORS have an object, of the 512 regions of
the second POSITIVE, both the most that the library takes; half of the regions are cut out of the finest level, a quarter of the next and an eighth of each
other. No anchor of RetinaNet is left out as undecided.
"""
import contextlib

import standin
import sums

OBJECTS, PROPOSALS, ANCHORS, POSITIVE = 7, 2000, 128, 128


class Sizes:
    """The rows of the next tensors whose size depends on values; without one, all are taken."""

    def __init__(self):
        self.next = []

    def rows(self, x):
        if x.dim() == 2 and not self.next:
            return 4 * OBJECTS  # anchors that overlap most with an object
        return self.next.pop(0) if self.next else x.numel()


@contextlib.contextmanager
def gpu():
    """standin.gpu, where tensors whose size depends on values get the assumed sizes."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torchvision.models.detection import _utils

    sizes = Sizes()
    aten = torch.ops.aten

    class Assumed(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func is aten.nonzero.default:
                return torch.empty(sizes.rows(args[0]), args[0].dim(), dtype=torch.int64, device=args[0].device)
            if func is aten._local_scalar_dense.default:
                return 0 if args[0].dtype == torch.bool or args[0].dim() else 1  # no box is degenerate; the first step
            if func is torch.ops.torchvision.nms.default:
                return torch.empty(min(len(args[0]), PROPOSALS), dtype=torch.int64, device=args[0].device)
            masks = func in (aten.index.Tensor, aten.index_put_.default, aten._index_put_impl_.default, aten._unsafe_index_put.default, aten.index_put.default) and any(
                i is not None and i.dtype in (torch.bool, torch.uint8) for i in args[1])
            if masks and func is not aten.index.Tensor and args[2].numel() == 1:
                return args[0]  # a number where the mask says so: no indices are made
            if masks:
                flat = [i if i is None or i.dtype == torch.int64 else torch.empty(i.numel(), dtype=torch.int64, device=i.device) for i in args[1]]
                args = (args[0], flat, *args[2:])
            return func(*args, **(kwargs or {}))

    call = _utils.BalancedPositiveNegativeSampler.__call__

    def sampled(self, matched):
        n, first = len(matched), self.batch_size_per_image == 256
        for m in matched:
            sizes.next += [ANCHORS if first else POSITIVE, m.numel()]
        found = call(self, matched)
        if first:
            sizes.next += [n * ANCHORS, n * (256 - ANCHORS)]
        else:
            sizes.next += [512] * n + [n * 256, n * 128, n * 64, n * 64] + [n * POSITIVE] + sizes.masks(n)
        return found

    _utils.BalancedPositiveNegativeSampler.__call__ = sampled
    standin_gpu = standin.gpu()
    with standin_gpu as memory, Assumed(), sums.in_place():
        gpu.sizes = memory.sizes = sizes
        sizes.masks = lambda n: []
        yield memory


def built(torch, row):
    """The library's network over a backbone that was trained before, without fetching its weights."""
    from torchvision.models import detection, resnet
    from torchvision.models.detection import backbone_utils, faster_rcnn, mask_rcnn, retinanet
    from torchvision.ops import FrozenBatchNorm2d, misc, poolers

    def as_trained(is_trained, layers, most, default):
        return default

    for module in (faster_rcnn, mask_rcnn, retinanet):
        module._validate_trainable_layers = as_trained
        module.resnet50 = (lambda weights=None, progress=True, norm_layer=None: resnet.resnet50(weights=None, norm_layer=norm_layer))
    if not row["model"].endswith("_v2"):
        for module in (faster_rcnn, mask_rcnn, retinanet):
            module.resnet50 = lambda weights=None, progress=True, norm_layer=None: resnet.resnet50(weights=None, norm_layer=FrozenBatchNorm2d)
    size = int(row["image"])
    poolers._setup_scales = lambda features, shapes, scale, level: ([1 / 4, 1 / 8, 1 / 16, 1 / 32], poolers.initLevelMapper(2, 5, canonical_scale=scale, canonical_level=level))
    return getattr(detection, row["model"].removesuffix("_fixed"))(weights=None, weights_backbone=None, num_classes=91, min_size=size, max_size=size * 1333 // 800)


def labels(torch, row):
    model = built(torch, row)
    masks = row["model"].startswith("mask")

    def images(batch, size):
        return [torch.empty(3, size, size * 1333 // 800) for _ in range(batch)]

    def loss(images, batch, size):
        if masks:
            gpu.sizes.masks = lambda n: [POSITIVE] * n + [n * POSITIVE // k for k in (2, 4, 8, 8)]
        anchors = model.rpn.anchor_generator if hasattr(model, "rpn") else model.anchor_generator
        anchors.cell_anchors = [torch.empty(a.shape) for a in anchors.cell_anchors]
        targets = []
        for _ in range(batch):
            t = {"boxes": torch.empty(OBJECTS, 4), "labels": torch.empty(OBJECTS, dtype=torch.int64)}
            if masks:
                t["masks"] = torch.empty(OBJECTS, size, size * 1333 // 800, dtype=torch.uint8)
            targets.append(t)
        loss.parts = model(images, targets)
        return sum(loss.parts.values())

    loss.images = images
    return model, loss
