"""Records the optimizer, its settings and its parameters. A step of a known
optimizer is skipped: it would only fill its states."""

import functools
import threading

from . import hooks

# Names of the classes in a configuration. For sgd the momentum decides.
NAMES = {
    "adam": "adam", "adamw": "adamw", "sgd": "sgd", "rmsprop": "rmsprop", "adagrad": "adagrad",
    "adafactor": "adafactor", "lion": "lion", "adam8bit": "adam8bit", "adamw8bit": "adam8bit",
    "pagedadam8bit": "adam8bit", "pagedadamw8bit": "adam8bit", "fusedadam": "adamw",
}
LIKE_ADAM = {"nadam": "adam", "radam": "adam", "adamax": "adam", "sparseadam": "adam", "lamb": "adam"}
_inside = threading.local()
made = 0
_seen = {}  # the optimizers that stepped, by identity


def install(torch):
    base = torch.optim.Optimizer
    init = base.__init__

    @functools.wraps(init)
    def __init__(self, *args, **kwargs):
        global made
        made += 1
        init(self, *args, **kwargs)
        _wrap(type(self), torch)

    base.__init__ = __init__
    for cls in [c for c in vars(torch.optim).values() if isinstance(c, type) and issubclass(c, base) and c is not base]:
        _without_fused(cls)
        _wrap(cls, torch)
    _clipping(torch)


def _without_fused(cls):
    """Turns fused off, because fused kernels need tensors on a GPU."""
    if "__init__" not in vars(cls):
        return
    init = cls.__init__

    @functools.wraps(init)
    def __init__(self, *args, **kwargs):
        asked = {k: kwargs.pop(k) for k in ("fused", "capturable") if k in kwargs}
        init(self, *args, **kwargs)
        if asked.get("fused"):
            self._carma_fused = True

    cls.__init__ = __init__


def _wrap(cls, torch):
    step = cls.step
    if getattr(step, "_carma", False):
        return

    @functools.wraps(step)
    def wrapper(self, closure=None, *args, **kwargs):
        if getattr(_inside, "deep", False):
            return step(self, closure, *args, **kwargs)
        _inside.deep = True
        try:
            result = None
            if closure is not None and callable(closure):
                with torch.enable_grad():
                    result = closure()
            if not _known(self) and not hasattr(self, "_carma_ran"):
                self._carma_ran = True
                step(self, *args, **kwargs)
        finally:
            _inside.deep = False
        _describe(self, torch)
        hooks.stepped(self)
        return result

    wrapper._carma = True
    wrapper.hooked = True  # so that PyTorch does not wrap it again
    cls.step = wrapper


def _known(optimizer):
    name = type(optimizer).__name__.lower()
    return name in NAMES or name in LIKE_ADAM


@hooks.quietly
def _describe(optimizer, torch):
    name = type(optimizer).__name__
    group = optimizer.param_groups[0]
    found = NAMES.get(name.lower())
    if found == "sgd" and any(g.get("momentum") for g in optimizer.param_groups):
        found = "sgd-momentum"
    if found in ("adam", "adamw") and getattr(getattr(optimizer, "args", None), "optim_bits", 32) == 8:
        found = "adam8bit"  # bitsandbytes, under the name of 32 bits
    if found is None and name.lower() in LIKE_ADAM:
        found = LIKE_ADAM[name.lower()]
        hooks.warn("optimizer %s is counted as %s: as many states" % (name, found))
    if found is None:
        found = _by_states(optimizer, torch)
        hooks.warn("optimizer %s is counted as %s, by the size of its states" % (name, found))
    how = "foreach" if hooks.version(torch) >= (2, 0) else "for-loop"  # PyTorch's choice on a GPU
    if group.get("foreach") is not None:
        how = "foreach" if group["foreach"] else "for-loop"
    if getattr(optimizer, "_carma_fused", False) or name.lower().startswith("fused"):
        how = "fused"
    if "foreach" not in group and how != "fused":
        how = "for-loop"
    params = [p for g in optimizer.param_groups for p in g["params"]]
    _seen[id(optimizer)] = {"name": found, "how": how, "params": sum(p.numel() for p in params), "tensors": {id(p) for p in params}}
    most = max(_seen.values(), key=lambda o: o["params"])
    if any(o["name"] != most["name"] for o in _seen.values()):
        hooks.warn("several optimizers: all parameters are counted for %s, which has most" % most["name"])
    hooks.train["optimizer"] = dict(most, tensors=set().union(*(o["tensors"] for o in _seen.values())))


def _by_states(optimizer, torch):
    held = sum(v.numel() * v.element_size() for s in optimizer.state.values() for v in s.values()
               if isinstance(v, torch.Tensor))
    params = sum(p.numel() * p.element_size() for g in optimizer.param_groups for p in g["params"])
    ratio = held / max(params, 1)
    if ratio < 0.1:
        return "sgd"
    if ratio < 0.75:
        return "adam8bit"
    return "sgd-momentum" if ratio < 1.5 else "adam"


def _clipping(torch):
    """Clips nothing, because all gradients are zeros."""
    utils = torch.nn.utils

    def norm(parameters, *args, **kwargs):
        return torch.tensor(0.0)

    for place in (utils, getattr(utils, "clip_grad", None)):
        for name in ("clip_grad_norm_", "clip_grad_value_", "clip_grad_norm"):
            if place is not None and hasattr(place, name):
                setattr(place, name, norm)
