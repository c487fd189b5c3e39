"""The training loop."""

import contextlib
import json
import math
import time

import torch

from . import catalogue, data, networks, state
from .leave import Leave
from .stop import EXIT_SAVED, flag
from .tasks import Task
from .usage import UsageError

WARM = 3  # first steps, which do not count for the time of a step
EXIT_TERMINATED = 143


def train(job, group):
    """Trains and returns the exit code: 0 done, 75 stopped and saved, 143 stopped without a checkpoint folder."""
    run = Training(job, group)
    code = run.steps()
    run.result(code)
    return code


class Training:
    """The part of one process. job has the checked arguments of the command line."""

    def __init__(self, job, group):
        self.job, self.group = job, group
        self.device = torch.device(job.device, group.rank) if job.device == "cuda" else torch.device("cpu")
        model = catalogue.MODELS[job.model]
        dataset = catalogue.DATASETS[job.dataset]
        self.task = Task(model, dataset, dataset.classes, job.size)
        self.source = data.opened(self.task, job.data, job.seed) if job.data else None
        if job.data and model.kind == "image":
            self.task.classes = len(self.source.classes)
        self.samples = len(self.source) if job.data else dataset.samples
        self.per_epoch = self.samples // job.batch_size
        if not self.per_epoch:
            raise UsageError(f"--batch-size {job.batch_size}: the data set has {self.samples} samples; at most that many")
        self.last = min(job.steps or math.inf, math.ceil(job.epochs * self.per_epoch) if job.epochs else math.inf)
        self.build(model)
        self.step = 0
        self.leave = Leave("" if group.rank else None)
        self.moved = []  # what is in host memory while we are away
        self.resume()

    def build(self, model):
        job = self.job
        torch.manual_seed(job.seed)
        try:
            net, self.origin = networks.build(job.model, self.task.classes, model.vocabulary, job.networks, job.layers, job.regions)
        except ImportError as e:
            raise UsageError(f"--networks {job.networks}: {e}") from None
        self.width = torch.bfloat16 if job.precision == "bf16" else torch.float32
        self.net = net.to(self.device, self.width).train()
        self.optimizer = optimizer(job.optimizer, self.net.parameters(), job.lr)
        self.scaler = scaler() if job.precision == "amp" and job.device == "cuda" else None
        self.wrapped = self.group.wrap(self.net, self.device, job.model.startswith("xlnet"))
        torch.manual_seed(job.seed + 1 + self.group.rank)

    def made_with(self):
        """The settings that must be equal to go on from a checkpoint."""
        keys = ("model", "batch_size", "size", "layers", "regions", "dataset", "optimizer", "lr", "precision", "seed", "synthetic")
        of = {k: getattr(self.job, k) for k in keys}
        return dict(of, processes=self.group.world, networks=self.origin, samples=self.samples, classes=self.task.classes)

    def resume(self):
        if not self.job.checkpoint:
            return
        old = state.load(self.job.checkpoint, self.made_with())
        if old is None:
            return
        self.net.load_state_dict(old["net"])
        self.optimizer.load_state_dict(old["optimizer"])
        if self.scaler:
            self.scaler.load_state_dict(old["scaler"])
        self.step = old["step"]
        cpu, gpu = old["random"][self.group.rank]
        torch.set_rng_state(cpu)
        if gpu is not None:
            torch.cuda.set_rng_state(gpu, self.device)
        self.say(f"goes on after step {self.step} of {self.job.checkpoint}")

    def save(self):
        if not self.job.checkpoint:
            return
        gpu = torch.cuda.get_rng_state(self.device) if self.job.device == "cuda" else None
        random = self.group.gather((torch.get_rng_state(), gpu))
        if self.group.rank == 0:
            state.save(self.job.checkpoint, {
                "made_with": self.made_with(), "step": self.step, "net": self.net.state_dict(), "optimizer": self.optimizer.state_dict(),
                "scaler": self.scaler.state_dict() if self.scaler else None, "random": random,
            })
            self.say(f"saved step {self.step} in {self.job.checkpoint}")
        self.group.wait()

    def batches(self):
        job, g = self.job, self.group
        last = self.last if self.last < math.inf else 1 << 62
        if self.source is None and job.synthetic == "device":
            return data.on_device(self.task, job.batch_size // g.world, job.seed, self.step, last, g.rank, self.device)
        source = self.source if self.source is not None else data.Synthetic(self.task, job.seed, self.samples)
        keys = data.Batches(source, job.batch_size, job.seed, self.step, last, g.rank, g.world)
        return data.loaded(source, keys, job.workers, job.device == "cuda")

    def steps(self):
        job, first = self.job, self.step
        self.first = first
        batches, meter = self.batches(), Meter(self)
        self.began = self.warm_at = time.monotonic()
        end = self.began + 60 * job.minutes if job.minutes else math.inf
        code = 0
        self.leave.offer()
        while self.step < self.last:
            stop, late, asked = self.group.any(flag.up, time.monotonic() >= end, self.leave.asked())
            if asked and not stop:
                began = time.monotonic()
                stop = not self.aside()
                away = time.monotonic() - began
                self.began, self.warm_at, meter.at, end = self.began + away, self.warm_at + away, meter.at + away, end + away
            if stop:
                code = EXIT_SAVED if job.checkpoint else EXIT_TERMINATED
                break
            if late:
                break
            loss = self.one(next(batches))
            self.step += 1
            if self.step == first + WARM:
                self.wait()
                self.warm_at = time.monotonic()
            meter.tell(loss)
            if job.save_every and self.step % job.save_every == 0 and self.step < self.last:
                self.save()
        self.wait()
        self.ended = time.monotonic()
        self.save()
        return code

    def aside(self):
        """Leaves the GPU as carma asks, and returns; False: we are to stop, and are in host memory."""
        if not self.leave.go(self.to_host, self.to_gpu, lambda: flag.up, self.group.any):
            return False
        if self.wrapped is None:
            self.wrapped = self.group.wrap(self.net, self.device, self.job.model.startswith("xlnet"))
        return True

    def to_host(self):
        self.wait()
        if self.group.world > 1:
            self.wrapped = None  # it has buffers for the gradients
        for t in self.tensors():
            if t.device == self.device:
                self.moved.append(t)
                t.data = t.data.to("cpu", copy=True)
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def to_gpu(self):
        for t in self.moved:
            t.data = t.data.to(self.device)
        self.moved = []

    def tensors(self):
        """Weights, gradients and moments: what is large."""
        for p in self.net.parameters():
            yield p
            if p.grad is not None:
                yield p.grad
        yield from self.net.buffers()
        for state in self.optimizer.state.values():
            yield from (v for v in state.values() if torch.is_tensor(v))

    def one(self, batch):
        """A training step; returns the loss on the device."""
        batch = tuple(t.to(self.device, non_blocking=True) for t in batch)
        if batch[0].is_floating_point():
            batch = (batch[0].to(self.width),) + batch[1:]
        with self.autocast():
            loss = self.task.loss(self.wrapped, batch)
        self.optimizer.zero_grad(set_to_none=True)
        if self.scaler:
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            loss.backward()
            self.optimizer.step()
        return loss.detach()

    def autocast(self):
        if self.job.precision != "amp":
            return contextlib.nullcontext()
        return torch.autocast(self.job.device, torch.float16 if self.job.device == "cuda" else torch.bfloat16)

    def wait(self):
        if self.job.device == "cuda":
            torch.cuda.synchronize(self.device)

    def say(self, text):
        if self.group.rank == 0:
            print(text, flush=True)

    def result(self, code):
        """The last line of output: the training, its speed and its memory."""
        of = self.group.gather(memory(self.device))
        done, warm = self.step - self.first, self.step - self.first - WARM
        seconds = self.ended - self.began
        peak = {k: None if of[0][k] is None else max(m[k] for m in of) for k in of[0]}
        self.say("result " + json.dumps({
            "state": {0: "finished", EXIT_SAVED: "saved"}.get(code, "stopped"), "model": self.job.model, "batch_size": self.job.batch_size,
            "size": self.job.size, "dataset": self.job.dataset, "optimizer": self.job.optimizer, "precision": self.job.precision,
            "networks": self.origin, "device": device_name(self.device), "processes": self.group.world, "torch": torch.__version__,
            "step": self.step, "steps": done, "seconds": round(seconds, 6),
            "samples_per_s": round(done * self.job.batch_size / seconds, 3) if done else None,
            "step_seconds": round((self.ended - self.warm_at) / warm, 6) if warm > 0 else None, **peak}))


class Meter:
    """Prints loss and speed every so many seconds, or each step."""

    def __init__(self, training):
        self.of, self.step, self.at = training, training.step, time.monotonic()

    def tell(self, loss):
        t = self.of
        if time.monotonic() - self.at < t.job.report and t.step < t.last:
            return
        value = loss.item()  # waits for the device
        now = time.monotonic()
        rate = (t.step - self.step) * t.job.batch_size / max(now - self.at, 1e-9)
        t.say(f"step {t.step}  loss {value:.9g}  {rate:.1f} samples/s")
        self.step, self.at = t.step, now


def memory(device):
    """Peaks of PyTorch's allocator, and the whole device's memory in use now, in bytes; None on the CPU."""
    keys = ("max_memory_reserved", "max_memory_allocated", "memory_reserved", "device_used")
    if device.type != "cuda":
        return dict.fromkeys(keys)
    free, total = torch.cuda.mem_get_info(device)
    values = (torch.cuda.max_memory_reserved(device), torch.cuda.max_memory_allocated(device), torch.cuda.memory_reserved(device), total - free)
    return dict(zip(keys, values))


def scaler():
    return torch.amp.GradScaler("cuda") if hasattr(torch.amp, "GradScaler") else torch.cuda.amp.GradScaler()


def device_name(device):
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


def optimizer(name, parameters, lr):
    of = torch.optim
    make, more = {
        "adam": (of.Adam, {}), "adamw": (of.AdamW, {}), "sgd": (of.SGD, {}), "sgd-momentum": (of.SGD, {"momentum": 0.9}),
        "rmsprop": (of.RMSprop, {}), "adagrad": (of.Adagrad, {}),
    }[name]
    return make(parameters, lr=lr, **more)
