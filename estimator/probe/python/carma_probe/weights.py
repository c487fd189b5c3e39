"""Weights without values: how modules convert them, and how files give them.
A checkpoint of many GiB is not read: its header has the shapes."""

import os

LARGE_FILE = 1 << 28  # bytes of a file of torch.save that is not read


def install(torch):
    _conversions(torch)
    _load(torch)


def _conversions(torch):
    """Module._apply of PyTorch cannot change tensors without values in place."""
    from . import values

    M, P = torch.nn.Module, torch.nn.Parameter
    real = M._apply

    def ordinary(p):
        return p is None or type(p) is P or values.without(p)

    def apply(self, fn, recurse=True):
        if recurse:
            for child in self.children():
                child._apply(fn)
        if not all(ordinary(p) for p in self._parameters.values()):
            return real(self, fn, False)
        for key, p in self._parameters.items():
            if p is not None:
                self._parameters[key] = _converted(p, fn)
        for key, b in self._buffers.items():
            if b is not None:
                self._buffers[key] = fn(b)
        return self

    def _converted(p, fn):
        with torch.no_grad():
            new = fn(p)
        if new is p:
            return p
        if values.without(p) or not values.without(new) and p.device == new.device:
            p.data = new
            return p
        if getattr(p, "_carma_now", None) is None:  # once for all modules that share it
            p._carma_now = P(new, p.requires_grad)
        return p._carma_now

    M._apply = apply


def _load(torch):
    from . import values

    load = torch.load

    def load_shapes(f, *args, **kwargs):
        try:
            large = os.path.getsize(f) > LARGE_FILE
        except (TypeError, OSError):
            large = False
        if not large:
            return load(f, *args, **kwargs)
        with values.bare():
            return load(f, *args, **kwargs)

    torch.load = load_shapes


# ---- safetensors ----

_TYPES = {"F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16"}


def safetensors(module):
    """safetensors, after its import: large tensors get only their shape."""
    real = module.safe_open

    class Slice:
        def __init__(self, inner):
            self.inner = inner

        def __getitem__(self, index):
            made = _made(self.inner)
            return self.inner[index] if made is None else made[index]

        def __getattr__(self, name):
            return getattr(self.inner, name)

    class safe_open:
        def __init__(self, *args, **kwargs):
            kwargs.pop("device", None)
            self.inner = real(*args[:2], **kwargs)

        def __enter__(self):
            self.inner.__enter__()
            return self

        def __exit__(self, *args):
            return self.inner.__exit__(*args)

        def get_slice(self, name):
            return Slice(self.inner.get_slice(name))

        def get_tensor(self, name):
            made = _made(self.inner.get_slice(name))
            return self.inner.get_tensor(name) if made is None else made

        def __getattr__(self, name):
            return getattr(self.inner, name)

    module.safe_open = safe_open


def _made(part):
    """A tensor without values as the file has it; None: it has values."""
    from . import values

    shape, numel = part.get_shape(), 1
    for n in shape:
        numel *= n
    dtype = _TYPES.get(part.get_dtype())
    if not values.on() or dtype is None or numel <= values.SMALL:
        return None
    import torch

    return torch.empty(shape, dtype=getattr(torch, dtype))
