"""Sums of gradients as PyTorch makes them: into the older one, if nobody else has it.

Under a dispatch mode, autograd makes each sum of two gradients in new memory (can_accumulate_inplace in PyTorch's
torch/csrc/autograd/input_buffer.cpp), which it does not do in a training. With InPlace within the other modes, a sum
takes the memory of the older gradient again.
"""
import contextlib


@contextlib.contextmanager
def in_place():
    """The mode for such sums. It is entered after all others."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class InPlace(TorchDispatchMode):
        alone = None  # how often a gradient that nobody else has is referred to here

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            back = torch._C._current_graph_task_id() != -1 and not torch.is_grad_enabled()
            if func is torch.ops.aten.add.Tensor and back and not kwargs and isinstance(args[1], torch.Tensor) and args[0].shape == args[1].shape and args[0].dtype == args[1].dtype:
                count = args[0]._use_count(), torch._C._storage_Use_Count(args[0].untyped_storage()._cdata)
                if self.alone is None:
                    self.alone = count
                if count <= self.alone:
                    return args[0].detach()
            return func(*args, **(kwargs or {}))

    mode = InPlace()
    with mode:
        x = torch.empty(8, requires_grad=True) * 1.0
        (x.exp().sum() + x.exp().sum()).backward()  # nobody else has these gradients
        if mode.alone is None:
            raise RuntimeError("no sum of gradients was seen; autograd works otherwise in this version of PyTorch")
        yield
