"""Makes batches. A batch depends only on the seed and the step, so a training that goes on from a
checkpoint gets the same batches as one that was never stopped."""

import os

import torch

from .usage import UsageError

_PRIME = 1000003


def seeded(generator, *numbers):
    """The generator, started by these numbers."""
    seed = 0
    for n in numbers:
        seed = (seed * _PRIME + n + 1) % (1 << 63)
    return generator.manual_seed(seed)


class Synthetic(torch.utils.data.Dataset):
    """Samples of random numbers, made one by one on the CPU."""

    def __init__(self, task, seed, samples):
        self.task, self.seed, self.samples, self.shuffled = task, seed, samples, False

    def __len__(self):
        return self.samples

    def __getitem__(self, key):
        made = self.task.sample(seeded(torch.Generator(), self.seed, key[1]), 1)
        return tuple(t[0] for t in made)


class Batches:
    """The samples of this process in each batch, as (epoch, index), from a step on."""

    def __init__(self, dataset, batch, seed, first, last, rank, world):
        self.length, self.shuffled, self.seed = len(dataset), dataset.shuffled, seed
        self.batch, self.first, self.last, self.rank, self.share = batch, first, last, rank, batch // world

    def __iter__(self):
        per_epoch = self.length // self.batch
        order, of = None, None
        for step in range(self.first, self.last):
            epoch, at = divmod(step, per_epoch)
            if self.shuffled and epoch != of:
                order, of = torch.randperm(self.length, generator=seeded(torch.Generator(), self.seed, epoch)), epoch
            begin = at * self.batch + self.rank * self.share
            part = range(begin, begin + self.share)
            yield [(epoch, int(order[i]) if self.shuffled else i) for i in part]


def loaded(dataset, batches, workers, pin):
    """Batches made on the CPU. The global random numbers do not change."""
    return iter(torch.utils.data.DataLoader(dataset, batch_sampler=batches, num_workers=workers, pin_memory=pin, generator=torch.Generator()))


def on_device(task, share, seed, first, last, rank, device):
    """Synthetic batches made on the device when they are needed."""
    generator = torch.Generator(device)
    for step in range(first, last):
        yield task.sample(seeded(generator, seed, step, rank), share, device)


def worker_processes():
    """One per CPU, at most 4. None if /dev/shm, through which they pass batches, is small."""
    try:
        room = os.statvfs("/dev/shm")
        if room.f_bavail * room.f_frsize < 1 << 30:
            return 0
    except OSError:
        return 0
    return min(4, len(os.sched_getaffinity(0)))


def opened(task, path, seed):
    """The data set in a folder or file: pictures for a classifier, text for a language model."""
    from . import files

    if not os.path.exists(path):
        raise UsageError(f"--data {path}: no such file or folder; mount it, for example -v ~/data:/data:ro --data /data")
    if task.kind == "image":
        return files.Pictures(path, task, seed)
    if task.kind in ("masked", "next", "sequence"):
        return files.Text(path, task, seed)
    raise UsageError(f"--data {path}: only classifiers and language models read files; leave it out to train this model on random numbers")
