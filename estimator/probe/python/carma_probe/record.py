"""Begins and ends recordings, and runs the operators meanwhile."""

import functools
import threading
import time
import weakref

from . import hooks, ops, regions, values
from .state import elapsed, settings
from .table import Table
from .tensors import inside

MANY = 200  # forward passes of a program that certainly only infers

_torch = None
_now = None  # the table being written
_owner = None  # its thread
_best = None  # table of this step
_last = None  # table of the step before
_modes = []
_computed = 0.0  # seconds spent in operators whose computation can be skipped


def begun():
    """Whether a forward pass was seen, perhaps not to its end."""
    return _now is not None and len(_now.layers) > 0 or whole()


def whole():
    """Whether a forward pass was seen to its end."""
    return _now is not None and _now.whole or _best is not None or _last is not None


def unfinished():
    """For a reason: how far the forward pass has come."""
    if _now is None or not _now.layers:
        return ""
    sizes = {id(p): p.numel() for root in _now.roots for p in root.parameters()}
    reached, total = sum(n for p, n in sizes.items() if p in _now.used), sum(sizes.values())
    return "the forward pass was cut off after %d of %d parameters, so its memory is not known: " % (reached, total)


def inference(late=False):
    """The reason if the program computes, but does not train. late: it still runs."""
    from . import optimizers

    if not _inferred or optimizers.made or begun():
        return ""
    if late:
        return "only forward passes without gradients (%d) and no optimizer within %g s: the probe estimates training" % (
            _inferred, settings["timeout"])
    return "the program only infers (forward passes without gradients: %d, no optimizer): the probe estimates training" % _inferred


def table():
    """The largest forward pass of the last full step, or of an unfinished one."""
    if _last is not None or _best is not None:
        return _last or _best
    return _now


def current():
    return _now if _owner == threading.get_ident() else None


def install(torch):
    global _torch
    _torch = torch
    call = torch.nn.Module.__call__

    @functools.wraps(call)
    def __call__(self, *args, **kwargs):
        if _now is None:
            _maybe_begin(self, args, kwargs)
        t = current()
        if t is None:
            return _unrecorded(call, self, args, kwargs)
        if not t.stack and _given_up(t):
            _leave()
            return __call__(self, *args, **kwargs)
        if not t.stack:
            t.enter(self)
        t.stack.append(self)
        try:
            if isinstance(self, torch.nn.RNNBase):
                return regions.region("recurrent", lambda: call(self, *args, **kwargs), regions.default, cell=_cell(self))
            return call(self, *args, **kwargs)
        except BaseException:
            t.broken = True
            raise
        finally:
            t.stack.pop()
            t.whole = not t.stack and not t.broken

    torch.nn.Module.__call__ = __call__
    regions.install(torch)


def _cell(module):
    """What cuDNN keeps follows from these sizes."""
    return {"kind": module.mode.split("_")[0].lower(), "hidden": module.hidden_size, "layers": module.num_layers,
            "directions": 2 if module.bidirectional else 1, "projection": getattr(module, "proj_size", 0),
            "dropout": module.dropout > 0 and module.num_layers > 1}


_depth = threading.local()
_inferred = 0  # forward passes without gradients


def _unrecorded(call, module, args, kwargs):
    """A call of a module outside of training."""
    global _inferred
    if getattr(_depth, "deep", False) or _torch.is_grad_enabled() and module.training:
        return call(module, *args, **kwargs)
    _depth.deep = True
    try:
        return call(module, *args, **kwargs)
    finally:
        _depth.deep = False
        _inferred += 1
        if _inferred >= MANY and elapsed() > 0.5 * settings["timeout"]:
            reason = inference()
            if reason:
                hooks.refuse(reason)


@hooks.quietly
def _maybe_begin(module, args, kwargs):
    if not module.training or not _torch.is_grad_enabled():
        return
    if not any(p.requires_grad for p in module.parameters()):
        return
    global _now, _owner
    batch, dim = _batch(module, args, kwargs)
    if not batch:
        return
    t = Table(_torch, module, batch, dim)
    t.add_inputs([args, kwargs])
    _now, _owner = t, threading.get_ident()
    _modes[:] = [_saved(), _mode()]
    for m in _modes:
        m.__enter__()


def _batch(module, args, kwargs):
    """The batch size and its dimension."""
    for value in list(args) + list(kwargs.values()):
        if isinstance(value, (list, tuple)) and value and all(isinstance(v, _torch.Tensor) and v.dim() == 3 for v in value):
            return len(value), 0  # a detector's images
    first = next((t for t in inside(_torch, [args, kwargs]) if t.dim() > 0), None)
    if args and isinstance(args[0], dict):  # boxes may come before images: most dimensions are those of the samples
        first = max(inside(_torch, args[0]), key=lambda t: t.dim(), default=first)
    if first is None:
        return hooks.train["loader_batch"] or 1, 0
    loader = hooks.train["loader_batch"]
    if first.dim() > 1 and first.shape[1] == loader and first.shape[0] != loader:
        return loader, 1
    if getattr(module, "batch_first", None) is False and first.dim() > 2:
        return first.shape[1], 1
    layers = getattr(module, "layers", None)
    if type(module).__name__ == "TransformerEncoder" and first.dim() > 2 and layers and layers[0].self_attn.batch_first is False:
        return first.shape[1], 1
    return first.shape[0], 0


def _leave():
    global _now, _owner
    for m in reversed(_modes):
        m.__exit__(None, None, None)
    del _modes[:]
    _now = _owner = None


@hooks.quietly
def seal():
    """The forward pass is over."""
    global _best
    t = current()
    if t is None:
        return
    _leave()
    t.flush()
    if _best is None or t.kept > _best.kept:
        _best = t
    if not hooks.steps:
        hooks.say_partial()


@hooks.quietly
def step_done():
    global _best, _last
    if current() is not None:
        seal()
    if _best is not None:
        _last, _best = _best, None


class _Saved:
    """What is left of a saved tensor. It lives as long as autograd's graph."""

    __slots__ = ("shape", "dtype", "__weakref__")

    def __init__(self, shape, dtype):
        self.shape, self.dtype = shape, dtype


def _given_up(t):
    """Whether the recorded pass has no backward: its graph is gone. Some models run
    one such pass when they are made."""
    return t.whole and t.alive and all(saved() is None for saved in t.alive)


def _saved():
    def pack(t):
        try:
            if _now is not None and _now.pack(t):
                return t
        except Exception:
            hooks.warn("a saved tensor was not understood")
        saved = _Saved(t.shape, t.dtype)
        if _now is not None:
            _now.alive.append(weakref.ref(saved))
        return saved

    def unpack(what):
        if isinstance(what, _torch.Tensor):
            return what
        return _torch.zeros(what.shape, dtype=what.dtype)

    return _torch.autograd.graph.saved_tensors_hooks(pack, unpack)


def _mode():
    from torch.utils._python_dispatch import TorchDispatchMode

    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            out = _compute(func, args, kwargs)
            t = _now
            if t is not None:
                try:
                    t.op(func, args, kwargs, out)
                except Exception as e:
                    hooks.warn("operator %s was not understood: %s" % (func, " ".join(str(e).split())[:200]))
            return out

    return Mode()


def _compute(func, args, kwargs):
    """Runs an operator. When the heavy ones have taken a while, what they
    compute is left out: the shapes are what matters."""
    global _computed
    name, _ = ops.name_of(func)
    shape = ops.shape_without_computing(name, args)
    if shape is None or values.on() and values.has_none(args):
        return func(*args, **kwargs)
    if _computed > settings["timeout"] * 0.1:
        hooks.warn("large products were left out to save time: control flow that depends on values may differ")
        return _torch.zeros(shape, dtype=args[-1 if name == "mm" else 1].dtype)
    began = time.monotonic()
    out = func(*args, **kwargs)
    _computed += time.monotonic() - began
    return out
