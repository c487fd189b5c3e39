"""Data loaders: the batch size, and no worker processes."""

import functools
import inspect

from . import hooks


def install(torch):
    loader = torch.utils.data.DataLoader
    init = loader.__init__
    signature = inspect.signature(init)

    @functools.wraps(init)
    def __init__(self, *args, **kwargs):
        try:
            bound = signature.bind(self, *args, **kwargs)
        except TypeError:
            return init(self, *args, **kwargs)  # PyTorch's own error
        a = bound.arguments
        a.pop("multiprocessing_context", None)
        for name, value in (("num_workers", 0), ("pin_memory", False), ("timeout", 0), ("persistent_workers", False)):
            if name in a:
                a[name] = value
        a.pop("prefetch_factor", None)
        a.pop("pin_memory_device", None)
        result = init(*bound.args, **bound.kwargs)
        size = getattr(self, "batch_size", None) or getattr(getattr(self, "batch_sampler", None), "batch_size", None)
        self._carma_batch = size or 0
        return result

    iterate = loader.__iter__

    def __iter__(self):
        if torch.is_grad_enabled():
            hooks.train["loader_batch"] = getattr(self, "_carma_batch", 0)
        return iterate(self)

    loader.__init__, loader.__iter__ = __init__, __iter__
