"""The recorded step as a model configuration, see configs/models."""

from . import hooks, processes, state, values


_WRAPPERS = ("DataParallel", "DistributedDataParallel", "FullyShardedDataParallel", "DeepSpeedEngine")


class Nothing(Exception):
    """Nothing was recorded."""


def build():
    from . import record

    t = record.table()
    if t is None or not t.layers:
        raise Nothing("no forward pass of a network in training mode was seen")
    layers = [dict(layer) for layer in t.layers]
    notes = list(hooks.warnings)
    layers += t.rest()
    if len(t.layers) >= 20000:
        notes.append("only the first 20000 layers were recorded")
    optimizer = hooks.train["optimizer"]
    own = {id(p): p for root in t.roots for p in root.parameters() if p.requires_grad}
    if optimizer and not set(own) <= optimizer["tensors"]:
        notes.append("the optimizer changes %d of %d trainable parameters" %
                     (sum(p.numel() for i, p in own.items() if i in optimizer["tensors"]), sum(p.numel() for p in own.values())))
    import torch

    how = "shapes only" if values.made else "with values"
    if state.why_again:
        how += ", because in the first run, without values, " + state.why_again
    notes.insert(0, "recorded with PyTorch %s, %s" % (torch.__version__, how))
    if not optimizer:
        notes.append("no optimizer step was seen; Adam is assumed")
    root = t.roots[0]
    while type(root).__name__ in _WRAPPERS:
        root = root.module
    parallel, gpus = hooks.train["parallel"], processes.size
    train = {
        "batch": t.batch * (gpus if parallel and parallel != "dp" else 1),
        "precision": _precision(t),
        "optimizer": optimizer["name"] if optimizer else "adam",
        "implementation": optimizer["how"] if optimizer else "foreach",
    }
    if hooks.train["checkpointing"]:
        train["checkpointing"] = True
    if parallel and gpus > 1:
        train.update(parallel=parallel, gpus=gpus)
    return {
        "schema": 1, "name": getattr(root, "_carma_name", type(root).__name__), "family": _family(layers), "origin": "probe", "train": train,
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
    """Leaves out empty values and defaults."""
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
    norms = kinds.get("layer_norm", 0) + kinds.get("rms_norm", 0)
    if kinds.get("batch_norm", 0) > norms and kinds.get("conv", 0) > kinds.get("attention", 0) + kinds.get("matmul", 0):
        return "cnn"  # attention between convolutions, as in YOLO11
    if "attention" in kinds or ("matmul" in kinds and "softmax" in kinds):
        return "transformer"
    if "conv" in kinds:
        return "cnn"
    if "recurrent" in kinds:
        return "other"
    return "mlp" if "linear" in kinds else "other"
