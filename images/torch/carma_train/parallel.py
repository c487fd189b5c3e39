"""One process for each GPU."""

import os
import sys
import tempfile

import torch
import torch.distributed as dist

from .stop import flag
from .usage import EXIT_USAGE, UsageError


class Alone:
    """A training in one process."""

    rank, world = 0, 1

    def any(self, *flags):
        return flags

    def gather(self, value):
        return [value]

    def wrap(self, net, device, unused):
        return net

    def wait(self):
        pass


class Group(Alone):
    """One of several processes. They agree over the CPU, so that nobody waits for a GPU."""

    def __init__(self, rank, world, backend):
        self.rank, self.world = rank, world
        self.cpu = dist.new_group(backend="gloo") if backend != "gloo" else None

    def any(self, *flags):
        """The flags; each is raised if it is raised in any process."""
        t = torch.tensor([int(f) for f in flags])
        dist.all_reduce(t, dist.ReduceOp.MAX, group=self.cpu)
        return [bool(x) for x in t.tolist()]

    def gather(self, value):
        values = [None] * self.world
        dist.all_gather_object(values, value, group=self.cpu)
        return values

    def wrap(self, net, device, unused):
        ids = [device.index] if device.type == "cuda" else None
        return torch.nn.parallel.DistributedDataParallel(net, device_ids=ids, find_unused_parameters=unused)

    def wait(self):
        dist.barrier(group=self.cpu)


def run(job, world, train):
    """Trains in world processes and returns the exit code; a process that fails ends all."""
    if world == 1:
        return train(job, Alone())
    with tempfile.TemporaryDirectory() as folder:
        mp = torch.multiprocessing.get_context("spawn")
        shared = mp.Value("i", 0, lock=False)
        code = mp.Value("i", 0, lock=False)
        args = (job, world, train, os.path.join(folder, "store"), shared, code)
        children = torch.multiprocessing.start_processes(_child, args, world, join=False)
        done = False
        while not done:
            if flag.up:
                shared.value = 1
            done = children.join(timeout=0.2)
        return code.value


def _child(rank, job, world, train, store, shared, code):
    flag.listen()  # a signal to the whole group must not end this process
    cuda = job.device == "cuda"
    if cuda:
        torch.cuda.set_device(rank)
    backend = "nccl" if cuda else "gloo"
    dist.init_process_group(backend, init_method="file://" + store, rank=rank, world_size=world)
    flag.shared = shared
    try:
        ended = train(job, Group(rank, world, backend))
    except UsageError as e:  # the same in every process
        ended = EXIT_USAGE
        if rank == 0:
            print(f"carma-train: {e}", file=sys.stderr)
    if rank == 0:
        code.value = ended
    dist.destroy_process_group()
