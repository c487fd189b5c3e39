"""Process groups. This process plays one of them, as if the others always
agreed. Processes of another rank than 0 wait: they would record the same."""

import os
import threading

from . import hooks, report
from .state import settings

rank = int(os.environ.get("RANK") or 0)
size = int(os.environ.get("WORLD_SIZE") or settings["gpus"])
grouped = False  # a process group was asked for
waiting = False  # this process is of another rank than 0


def install(torch):
    import torch.distributed as dist

    real = getattr(dist, "init_process_group", None)

    def init_process_group(backend=None, *args, rank=-1, world_size=-1, **kwargs):
        _join(rank, world_size)
        _fake_group(dist, real)

    dist.init_process_group = init_process_group
    dist.is_initialized = lambda: grouped
    dist.is_available = lambda: True
    dist.is_nccl_available = lambda: True
    dist.get_rank = lambda group=None, *args, **kwargs: rank
    if hooks.version(torch) < (2, 4):
        dist.get_world_size = lambda *args, **kwargs: size
    dist.get_backend = lambda *args, **kwargs: "nccl"
    for name in """barrier all_reduce broadcast reduce broadcast_object_list monitored_barrier scatter_object_list
            destroy_process_group""".split():
        setattr(dist, name, _same)
    dist.all_gather, dist.all_gather_object, dist.gather_object = _all_gather, _all_gather_object, _gather_object
    import sys

    inner = sys.modules.get("torch.distributed.distributed_c10d")
    for name in """init_process_group is_initialized get_rank get_backend barrier all_reduce broadcast reduce
            broadcast_object_list destroy_process_group all_gather all_gather_object gather_object""".split():
        if inner is not None and hasattr(inner, name):
            setattr(inner, name, getattr(dist, name))


def _join(own, all):
    global rank, size, grouped, waiting
    rank = own if isinstance(own, int) and own >= 0 else rank
    size = all if isinstance(all, int) and all > 0 else size
    grouped = True
    if rank:
        waiting = True
        report.silence()
        threading.Event().wait()  # until the launcher ends it


def _fake_group(dist, real):
    """PyTorch's own group without communication, where it has one: for meshes
    of devices and groups within the group."""
    try:
        from torch.testing._internal.distributed.fake_pg import FakeStore
    except ImportError:
        return
    up = dist.is_initialized
    inner = dist.distributed_c10d
    try:
        inner.is_initialized = dist.is_initialized = lambda: inner.GroupMember.WORLD is not None
        if not dist.is_initialized():
            real(backend="fake", rank=rank, world_size=size, store=FakeStore())
    except Exception as e:
        hooks.warn("no process group could be made: %s" % " ".join(str(e).split())[:200])
    inner.is_initialized = dist.is_initialized = up


class _Done:
    def wait(self, *args):
        return True

    is_completed = wait


def _same(*args, **kwargs):
    return _Done() if kwargs.get("async_op") else None


def _all_gather(tensors, tensor, *args, **kwargs):
    for t in tensors:
        t.copy_(tensor)
    return _same(**kwargs)


def _all_gather_object(objects, value, *args, **kwargs):
    objects[:] = [value] * len(objects)


def _gather_object(value, objects=None, *args, **kwargs):
    if objects is not None:
        objects[:] = [value] * len(objects)
