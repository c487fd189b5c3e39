"""What a program reads from tensors without values, see values.py."""

_torch = None


def plain(dtype):
    """The one value of a tensor of this type."""
    if dtype is _torch.bool:
        return False
    return 1.0 if dtype.is_floating_point else 0


def install(torch):
    global _torch
    _torch = torch
    T = torch.Tensor
    from . import values

    tolist, numpy = T.tolist, T.numpy

    def nested(shape, value):
        return [nested(shape[1:], value) for _ in range(shape[0])] if shape else value

    def read_list(self):
        return nested(list(self.shape), plain(self.dtype)) if values.without(self) else tolist(self)

    def read_numpy(self, *args, **kwargs):
        if not values.without(self):
            return numpy(self, *args, **kwargs)
        return numpy(torch.zeros(1, dtype=self.dtype)).repeat(max(self.numel(), 0)).reshape(tuple(self.shape))

    def finite(call):
        def wrapper(t, *args, **kwargs):
            if values.without(t) and t.numel() <= values.SMALL:
                return torch.ones(t.shape, dtype=torch.bool)
            return call(t, *args, **kwargs)

        return wrapper

    address = T.data_ptr

    def data_ptr(self):
        if not values.without(self):
            return address(self)
        return self.untyped_storage()._cdata + self.storage_offset() * self.element_size()  # no address, but its own

    T.tolist, T.numpy, T.data_ptr = read_list, read_numpy, data_ptr
    torch.isfinite, T.isfinite = finite(torch.isfinite), finite(T.isfinite)
    for name, answer in (("all", True), ("any", False), ("_is_all_true", True), ("_is_any_true", False)):
        for place in (T, torch):
            if hasattr(place, name):
                setattr(place, name, _every(getattr(place, name), answer))
    torch.allclose = _close(torch.allclose)


def _every(call, answer):
    """Checks of a program are passed: all are as they should be, none is not."""
    from . import values

    def wrapper(t, *args, **kwargs):
        if values.without(t) and not args and not kwargs:
            return _torch.tensor(answer)
        return call(t, *args, **kwargs)

    return wrapper


def _close(call):
    from . import values

    def wrapper(a, b, *args, **kwargs):
        return True if values.without(a) or values.without(b) else call(a, b, *args, **kwargs)

    return wrapper
