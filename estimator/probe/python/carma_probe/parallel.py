"""Several GPUs: one process plays one of them."""

import os

from . import hooks, settings


def install(torch):
    nn = torch.nn

    def wrapper(kind):
        class Parallel(nn.Module):
            def __init__(self, module, *args, **kwargs):
                super().__init__()
                self.module = module
                hooks.train["parallel"] = kind

            def forward(self, *args, **kwargs):
                return self.module(*args, **kwargs)

            def no_sync(self):
                from .cuda import _Anything

                return _Anything()

        return Parallel

    data, distributed = wrapper("dp"), wrapper("ddp")
    data.__name__, distributed.__name__ = "DataParallel", "DistributedDataParallel"
    nn.DataParallel = nn.parallel.DataParallel = data
    nn.parallel.DistributedDataParallel = distributed
    nn.parallel.data_parallel.DataParallel = data if hasattr(nn.parallel.data_parallel, "DataParallel") else data
    import sys

    module = sys.modules.get("torch.nn.parallel.distributed")
    if module is not None:
        module.DistributedDataParallel = distributed
    _processes(torch)


def _processes(torch):
    """torch.distributed of a group in which the others always agree."""
    import torch.distributed as dist

    rank = int(os.environ.get("RANK", 0))
    size = int(os.environ.get("WORLD_SIZE", settings["gpus"]))
    state = {"up": False}

    def init_process_group(*args, **kwargs):
        state["up"] = True

    def same(tensor=None, *args, **kwargs):
        return None

    def all_gather(tensors, tensor, *args, **kwargs):
        for t in tensors:
            t.copy_(tensor)

    dist.init_process_group = init_process_group
    dist.is_initialized = lambda: state["up"]
    dist.is_available = lambda: True
    dist.is_nccl_available = lambda: True
    dist.destroy_process_group = same
    dist.get_rank = lambda *args, **kwargs: rank
    dist.get_world_size = lambda *args, **kwargs: size
    dist.get_backend = lambda *args, **kwargs: "nccl"
    dist.all_gather = all_gather
    for name in "barrier all_reduce broadcast reduce broadcast_object_list monitored_barrier".split():
        setattr(dist, name, same)
