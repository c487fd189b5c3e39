"""When recording begins and ends, and what runs meanwhile."""

import functools
import threading
import time

from . import hooks, ops, settings
from .table import Table
from .tensors import inside

_torch = None
_now = None  # the table being written
_owner = None  # its thread
_best = None  # of this step
_last = None  # of the step before
_modes = []
_computed = 0.0  # seconds in operators that can be left out


def have():
    return _now is not None and len(_now.layers) > 0 or _best is not None or _last is not None


def table():
    """The largest forward pass of the last full step, or what there is."""
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
            return call(self, *args, **kwargs)
        if not t.stack:
            t.enter(self)
        t.stack.append(self)
        try:
            if isinstance(self, torch.nn.RNNBase):
                return _region("recurrent", lambda: call(self, *args, **kwargs), _default)
            return call(self, *args, **kwargs)
        finally:
            t.stack.pop()

    torch.nn.Module.__call__ = __call__
    _functions(torch)


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
    """The batch size, and which dimension it is."""
    for value in list(args) + list(kwargs.values()):
        if isinstance(value, (list, tuple)) and value and all(isinstance(v, _torch.Tensor) and v.dim() == 3 for v in value):
            return len(value), 0  # a detector's images
    first = next((t for t in inside(_torch, [args, kwargs]) if t.dim() > 0), None)
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


def _saved():
    def pack(t):
        try:
            if _now is not None and _now.pack(t):
                return t
        except Exception:
            hooks.warn("a saved tensor was not understood")
        return (t.shape, t.dtype)

    def unpack(what):
        if isinstance(what, _torch.Tensor):
            return what
        return _torch.zeros(what[0], dtype=what[1])

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
    if shape is None:
        return func(*args, **kwargs)
    if _computed > settings["timeout"] * 0.1:
        hooks.warn("large products were left out to save time: control flow that depends on values may differ")
        return _torch.zeros(shape, dtype=args[-1 if name == "mm" else 1].dtype)
    began = time.monotonic()
    out = func(*args, **kwargs)
    _computed += time.monotonic() - began
    return out


# ---- regions ----


def _region(kind, call, rule, **info):
    t = current()
    if t is None or t.region is not None:
        return call()
    t.open(kind).info.update(info)
    try:
        out = call()
    except BaseException:
        t.region = None
        raise
    hooks.quietly(t.close)(out, rule)
    t.region = None
    return out


def _default(t, n, main, out):
    """What layers of this type keep is known."""
    t.layers[n].pop("keeps", None)


def _mask(t, n, main, out):
    t.kept += out.numel()
    keeps = t.layers[n].setdefault("keeps", {})
    if main.batched and out.numel() % t.batch == 0:
        keeps["bytes"] = out.numel() // t.batch
    else:
        keeps["whole"] = out.numel()


def _functions(torch):
    f = torch.nn.functional
    for name in "dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout".split():
        if hasattr(f, name):
            setattr(f, name, _wrapped(getattr(f, name), "dropout", _mask))
    f.cross_entropy = _wrapped(f.cross_entropy, "cross_entropy", None)
    if hasattr(f, "scaled_dot_product_attention"):
        _attention(torch, f)
    _checkpoint(torch)


def _wrapped(call, kind, rule):
    @functools.wraps(call)
    def wrapper(*args, **kwargs):
        return _region(kind, lambda: call(*args, **kwargs), rule)

    return wrapper


def _attention(torch, f):
    """Fused on a GPU, whatever the CPU does."""
    real = f.scaled_dot_product_attention

    @functools.wraps(real)
    def attention(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, **kwargs):
        def call():
            return real(query, key, value, attn_mask, 0.0, is_causal, **kwargs)

        def rule(t, n, main, out):
            for tensor in (query, key, value):
                t._keep(n, t.look(tensor))
            t._keep(n, main)
            rows = out.numel() // max(out.shape[-1], 1)
            keeps = t.layers[n]["keeps"]
            keeps["bytes"] = keeps.get("bytes", 0) + 4 * rows // t.batch
            t.kept += 4 * rows

        heads = int(query.shape[-3]) if query.dim() > 3 else 1
        return _region("attention", call, rule, heads=heads)

    f.scaled_dot_product_attention = attention


def _checkpoint(torch):
    def checkpoint(function, *args, use_reentrant=None, preserve_rng_state=True, context_fn=None,
                   determinism_check=None, debug=None, **kwargs):
        hooks.train["checkpointing"] = True
        t = current()
        if t is None or t.block:
            return function(*args, **kwargs)
        t.flush()
        t.blocks += 1
        t.block = t.blocks
        try:
            return function(*args, **kwargs)
        finally:
            t.pending = []
            t.block = 0

    torch.utils.checkpoint.checkpoint = checkpoint
