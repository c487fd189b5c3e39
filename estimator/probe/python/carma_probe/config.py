"""The recorded step as a model configuration, see configs/models."""

from . import hooks, settings


class Nothing(Exception):
    """There is nothing to tell."""


def build():
    from . import record

    t = record.table()
    if t is None or not t.layers:
        raise Nothing("no forward pass of a network in training mode was seen")
    layers = [dict(layer) for layer in t.layers]
    notes = list(hooks.warnings)
    rest = [p for root in t.roots for p in root.parameters() if id(p) not in t.assigned]
    rest = list({id(p): p for p in rest}.values())
    if rest:
        layers.append({"name": "(not used in this step)", "type": "other", "inputs": [len(layers) - 1], "out": [1],
                       "whole": True, "params": [int(p.numel()) for p in rest], "keeps": {},
                       "frozen": not any(p.requires_grad for p in rest)})
    if len(t.layers) >= 20000:
        notes.append("only the first 20000 layers were recorded")
    optimizer = hooks.train["optimizer"]
    own = {id(p): p for root in t.roots for p in root.parameters() if p.requires_grad}
    if optimizer and not set(own) <= optimizer["tensors"]:
        notes.append("the optimizer changes %d of %d trainable parameters" %
                     (sum(p.numel() for i, p in own.items() if i in optimizer["tensors"]), sum(p.numel() for p in own.values())))
    import torch

    notes.insert(0, "recorded with PyTorch " + torch.__version__)
    if not optimizer:
        notes.append("no optimizer step was seen; Adam is assumed")
    root = t.roots[0]
    while type(root).__name__ in ("DataParallel", "DistributedDataParallel"):
        root = root.module
    parallel, gpus = hooks.train["parallel"], settings["gpus"]
    train = {
        "batch": t.batch * (gpus if parallel == "ddp" else 1),
        "precision": _precision(t),
        "optimizer": optimizer["name"] if optimizer else "adam",
        "implementation": optimizer["how"] if optimizer else "foreach",
    }
    if hooks.train["checkpointing"]:
        train["checkpointing"] = True
    if parallel and gpus > 1:
        train.update(parallel=parallel, gpus=gpus)
    return {
        "schema": 1, "name": type(root).__name__, "family": _family(layers), "origin": "probe", "train": train,
        "inputs": t.inputs or [{"shape": [1]}], "layers": [_clean(layer) for layer in layers], "warnings": notes,
    }


def _precision(t):
    if hooks.train["amp"] and t.width == 4:
        return "amp"
    if t.width == 2:
        first = next(p for p in t.roots[0].parameters() if p.is_floating_point())
        return "bf16" if "bfloat16" in str(first.dtype) else "fp16"
    return "fp32"


def _clean(layer):
    """Without what is empty or the same by default."""
    out = {k: v for k, v in layer.items() if v not in (None, False, [], "") or k == "keeps"}
    if layer["type"] not in ("conv", "conv_transpose"):
        out.pop("groups", None)
    for key in ("groups", "stride"):
        if out.get(key) == 1:
            del out[key]
    out["out"] = layer["out"]
    return out


def _family(layers):
    kinds = {}
    for layer in layers:
        kinds[layer["type"]] = kinds.get(layer["type"], 0) + 1
    names = " ".join(layer.get("name", "") for layer in layers[:2000])
    if "roi_heads" in names or "rpn." in names:
        return "detection"
    if "embedding_bag" in kinds:
        return "recommender"
    if "attention" in kinds or ("matmul" in kinds and "softmax" in kinds):
        return "transformer"
    if "conv" in kinds:
        return "cnn"
    if "recurrent" in kinds:
        return "other"
    return "mlp" if "linear" in kinds else "other"
