"""Large tensors of floating-point numbers have a shape and no values.

A model of 70 billion parameters then takes no memory, and its forward pass no
time. PyTorch's fake tensors do that (version 2.4 or newer). Whole numbers,
truth values and small tensors keep their values, because a program decides by
them: indices, lengths, labels, masks, noise schedules, small networks. What is
computed from a tensor without values has none either.

A program may read such a tensor: a loss is then 1, a whole number 0, a truth
value false. Where the number of results follows from values (the places where
a mask is set), the program is run again from its start with values, see
rerun.py. If the model is too large for that, everything is taken as selected.
"""

from . import hooks, ops, reading, rerun, weights
from .state import settings

SMALL = 1 << 16  # numbers of a tensor that keeps its values
SMALL_WHOLE = 1 << 25  # the same of whole numbers
VERSION = (2, 4)

_torch = None
_Fake = None
_fake_mode = None
_mode = None
made = 0  # bytes of the tensors without values that were made from nothing


def on():
    return _mode is not None


def without(t):
    """Whether t has no values."""
    return _Fake is not None and isinstance(t, _Fake)


def bare():
    """A context in which everything that is made has no values."""
    return _fake_mode


def install(torch):
    global _torch, _Fake, _fake_mode, _mode
    if hooks.version(torch) < VERSION or not settings["fake"]:
        return
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

    _torch, _Fake = torch, FakeTensor
    _fake_mode = FakeTensorMode(allow_non_fake_inputs=True)
    _mode = _values_mode(torch)
    FakeTensorMode.__deepcopy__ = lambda self, memo: self
    reading.install(torch)
    weights.install(torch)
    _mode.__enter__()  # of this thread, until its end


def _values_mode(torch):
    from torch.utils._python_dispatch import TorchDispatchMode

    class Values(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            if not has_none(args) and not (kwargs and has_none(kwargs.values())):
                size = _size_of_new(func, args, kwargs)
                if size is None and not _grows(func, args):
                    return func(*args, **kwargs)
                global made
                made += size or 0
            return _shapes(func, args, kwargs)

    return Values()


def has_none(args):
    """Whether one of these arguments has no values."""
    for a in args:
        if isinstance(a, _Fake) or isinstance(a, (list, tuple)) and a and has_none(a):
            return True
    return False


# ---- new tensors ----

_SIZED = {"empty", "zeros", "ones", "full", "rand", "randn", "empty_strided", "normal", "randint"}
_LIKE = {"empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like"}
_NEW = {"new_empty", "new_zeros", "new_ones", "new_full", "new_empty_strided"}


def _size_of_new(func, args, kwargs):
    """The bytes of a new tensor that gets no values; None: it has values."""
    name, _ = ops.name_of(func)
    if name in _SIZED:
        shape = next((a for a in args if isinstance(a, (list, tuple))), None)
        dtype = kwargs.get("dtype") or (_torch.int64 if name == "randint" else None)
        if dtype is None and name == "full":
            dtype = _torch.tensor(args[1]).dtype
    elif name in _LIKE or name in _NEW:
        shape = args[0].shape if name in _LIKE else args[1]
        dtype = kwargs.get("dtype") or args[0].dtype
    else:
        return None
    if shape is None or str(kwargs.get("device")) == "meta":
        return None
    numel = 1
    for n in shape:
        numel *= int(n)
    dtype = dtype or _torch.get_default_dtype()
    if numel <= (SMALL if dtype.is_floating_point or dtype.is_complex else SMALL_WHOLE):
        return None
    if name in _LIKE and args[0].device.type == "meta" and kwargs.get("device") is None:
        return None
    return numel * dtype.itemsize


_JOINING = """bitwise_and bitwise_or logical_and logical_or le lt ge gt eq ne where add sub mul masked_fill _to_copy
clone""".split()


def _grows(func, args):
    """Whether tensors with values make one that is too large for them: a mask for
    all pairs of places, for one."""
    name, inplace = ops.name_of(func)
    if name not in _JOINING or inplace:
        return False
    sizes = {}
    for a in args:
        if isinstance(a, _torch.Tensor):
            for i, n in enumerate(reversed(a.shape)):
                sizes[i] = max(sizes.get(i, 1), int(n))
    numel = 1
    for n in sizes.values():
        numel *= n
    return numel > SMALL_WHOLE


# ---- operators ----

_FILLS = {"normal", "uniform", "fill", "zero", "random", "bernoulli", "exponential", "copy", "clamp", "clamp_min", "clamp_max", "erfinv"}


def _shapes(func, args, kwargs):
    name, inplace = ops.name_of(func)
    if inplace and name in _FILLS:
        return args[0]  # only its values change
    if name == "_local_scalar_dense":
        return reading.plain(args[0].dtype)
    if name == "equal":
        return False
    if name == "masked_select" and not without(args[1]):
        shape = _torch.broadcast_shapes(args[0].shape, args[1].shape)
        func, name, args = _torch.ops.aten.index.Tensor, "index", (args[0].expand(shape), [args[1].expand(shape)])
    args, kwargs = _with_places(name, args, kwargs)
    from torch._subclasses.fake_tensor import (DataDependentOutputException, DynamicOutputShapeException,
                                               UnsupportedOperatorException)

    try:
        with _fake_mode:
            return func(*args, **kwargs)
    except (DataDependentOutputException, DynamicOutputShapeException, UnsupportedOperatorException, NotImplementedError):
        rerun.with_values("operator %s needs values" % name, made)
        out = _all_of(name, args)
        if out is None:
            raise
        hooks.warn("the values that %s needs are not there: everything counts as selected" % name)
        return out
    except RuntimeError as e:
        if "same dtype" in str(e) or "expected m1 and m2" in str(e):
            return _same_type(func, args, kwargs)
        raise


def _with_places(name, args, kwargs):
    """A mask with values as places: so the size of the selection is known."""
    if name not in ("index", "index_put", "_unsafe_index") or len(args) < 2:
        return args, kwargs
    places = []
    for i in args[1]:
        if isinstance(i, _torch.Tensor) and not without(i) and i.dtype in (_torch.bool, _torch.uint8):
            places.extend(i.nonzero().unbind(1))
        else:
            places.append(i)
    return (args[0], places) + tuple(args[2:]), kwargs


def _all_of(name, args):
    """The result of a selection by values that are not there: everything."""
    x = args[0]
    with _fake_mode:
        if name == "nonzero":
            return _torch.empty(x.numel(), x.dim(), dtype=_torch.int64)
        if name == "masked_select":
            return _torch.empty(_torch.broadcast_shapes(x.shape, args[1].shape).numel(), dtype=x.dtype)
        if name in ("index", "_unsafe_index"):
            places = []
            for i in args[1]:
                if isinstance(i, _torch.Tensor) and i.dtype in (_torch.bool, _torch.uint8):
                    places += [_torch.empty(i.numel(), dtype=_torch.int64) for _ in range(i.dim())]
                else:
                    places.append(i)
            return _torch.ops.aten.index.Tensor(x, places)
    return None


def _same_type(func, args, kwargs):
    """Autocast would have made the types of a product equal."""
    wide = next(a.dtype for a in args if isinstance(a, _torch.Tensor))
    args = tuple(a.to(wide) if isinstance(a, _torch.Tensor) and a.is_floating_point() else a for a in args)
    with _fake_mode:
        return func(*args, **kwargs)
