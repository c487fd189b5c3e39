"""Storages and their owners."""


def storage(t):
    """The address of a tensor's memory, and its size in bytes."""
    try:
        s = t.untyped_storage() if hasattr(t, "untyped_storage") else t.storage()
        size = s.nbytes()
        if hasattr(t, "fake_mode"):
            return (-s._cdata if size else 0), size  # it has no address, but is one object
        return s.data_ptr() if size else 0, size
    except (RuntimeError, NotImplementedError, AttributeError):
        return 0, t.numel() * t.element_size()


def inside(torch, value, depth=0):
    """The tensors in nested arguments, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif depth < 6:
        if isinstance(value, (list, tuple)):
            for v in value:
                yield from inside(torch, v, depth + 1)
        elif isinstance(value, dict):
            for v in value.values():
                yield from inside(torch, v, depth + 1)
        elif hasattr(value, "tensors"):  # torchvision's ImageList
            yield from inside(torch, value.tensors, depth + 1)


class Memory:
    """The content of one storage."""

    __slots__ = ("layer", "batched", "size", "param", "input", "side", "shape", "kept")

    def __init__(self, size, shape, layer=None, batched=False, param=None, input=None, side=False):
        self.size, self.shape = size, tuple(shape)
        self.layer = layer  # index of the layer whose output it is
        self.batched = batched  # grows with the batch
        self.param = param  # the parameter in it
        self.input = input  # number of the model's input in it
        self.side = side  # another output of its layer: indices, statistics
        self.kept = False
