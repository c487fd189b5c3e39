"""Peak memory of training steps of the transformers library's networks that find objects by learned queries (DETR,
MaskFormer, Mask2Former), without a GPU and without weights.

    python mask_steps.py ../step/testdata/queries.csv

fills the column peak_bytes of rows that lack it; the table's head has the versions. standin.py says what is counted.
A step is that of the library's trainer: the model with its own loss under autocast where the row says so, the backward
pass, the optimizer. Models are built from the table of the hub (../networks/hf), without weights.

The assignment of queries to objects needs values, which fake tensors have not: the costs are computed as the library
does, and then each object gets the query of its own number. It has the same sizes. Each image has OBJECTS objects.
"""
import contextlib
import os
import sys

import standin
import sums
import transformers_heads

OBJECTS = 7  # in an image, as COCO has on average
HUB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "networks", "hf")
CLASSES = {"object-detection": "DetrForObjectDetection", "segmentation": "DetrForSegmentation"}


@contextlib.contextmanager
def gpu():
    """standin.gpu, where conditions hold: all numbers are finite, boxes are in order."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class Assumed(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func is torch.ops.aten._local_scalar_dense.default:
                return True if args[0].dtype == torch.bool else 1
            return func(*args, **(kwargs or {}))

    with standin.gpu() as memory, Assumed(), sums.in_place():
        yield memory


def on_gpu(torch, model):
    """Moves what was made by torch.Tensor, which knows no device."""
    for module in model.modules():
        for name, p in list(module.named_parameters(recurse=False)):
            if p.device.type == "cpu":
                setattr(module, name, torch.nn.Parameter(torch.empty(p.shape)))


def in_order(costs):
    """The fixed assignment: object i has query i."""
    n = min(costs.shape)
    return list(range(n)), list(range(n))


def built(torch, row):
    """The library's model of a row."""
    import transformers
    from transformers import masking_utils
    from transformers.loss import loss_for_object_detection
    from transformers.models.mask2former import modeling_mask2former
    from transformers.models.maskformer import modeling_maskformer

    for module in (loss_for_object_detection, modeling_mask2former, modeling_maskformer):
        module.linear_sum_assignment = in_order
    transformers.PreTrainedModel.initialize_weights = lambda model: None  # fake tensors have no numbers to set
    torch.linspace = linspace(torch)
    # The library looks whether there is padding, which it cannot of fake tensors.
    masking_utils._ignore_bidirectional_mask_sdpa = lambda *a, **k: "padded" not in row["settings"].split()
    settings = dict(transformers_heads.configs(HUB)[row["model"]])
    kind = settings.pop("model_type")
    config = transformers.AutoConfig.for_model(kind, **settings)
    head = row["head"] or settings["architectures"][0]
    return getattr(transformers, CLASSES.get(head, head))._from_config(config), config


def linspace(torch):
    plain = torch.linspace

    def call(first, last, steps=100, **more):
        if "device" in more:  # within the model's forward pass
            return plain(first, last, steps, **more)
        return transformers_heads.Evenly(first, last, steps)  # numbers that are read while the model is made

    return call


def labels(torch, config, batch, side):
    """What the loss compares with: objects, and where the model learns masks, theirs."""
    numbers = [torch.empty(OBJECTS, dtype=torch.int64) for _ in range(batch)]
    if config.model_type in ("maskformer", "mask2former"):
        return {"class_labels": numbers, "mask_labels": [torch.empty(OBJECTS, side, side) for _ in range(batch)]}
    all = [{"class_labels": n, "boxes": torch.empty(OBJECTS, 4)} for n in numbers]
    for one in all:
        one["masks"] = torch.empty(OBJECTS, side, side, dtype=torch.bool)
    return {"labels": all}


def peak(row):
    import torch

    batch, side, cast = int(row["batch"]), int(row["image"]), row["precision"] == "amp"
    with gpu() as memory:
        model, config = built(torch, row)
        on_gpu(torch, model)
        model.train()
        if row["checkpointing"] == "true":
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        standin.count(memory, model)
        trained = [p for p in model.parameters() if p.requires_grad]
        print(sum(p.numel() for p in model.parameters()), sum(p.numel() for p in trained), file=sys.stderr)
        if row["optimizer"] == "sgd":
            optimizer = torch.optim.SGD(trained, lr=0.01, foreach=True)
        else:
            optimizer = torch.optim.AdamW(trained, foreach=True)
        for _ in range(2):
            images = torch.empty(batch, 3, side, side)
            targets = labels(torch, config, batch, side)
            targets["pixel_mask"] = torch.ones(batch, side, side, dtype=torch.int64)  # as the library's processors give it
            with torch.autocast("cuda", dtype=torch.float16, enabled=cast):
                loss = model(pixel_values=images, **targets).loss
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
    return memory.peak


if __name__ == "__main__":
    standin.fill(sys.argv[1], peak)
