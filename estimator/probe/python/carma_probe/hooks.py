"""Replacements in PyTorch that record the program's first steps."""

import functools
import os
import threading
import traceback

from . import report
from .state import EXIT_DONE, elapsed, settings

steps = 0  # optimizer steps so far
warnings = []
train = {"loader_batch": 0, "amp": False, "dtype": "", "parallel": "", "optimizer": None, "checkpointing": False}
_ending = threading.Lock()


def warn(text):
    if text not in warnings and len(warnings) < 20:
        warnings.append(text)


def version(torch):
    parts = torch.__version__.split("+")[0].split(".")
    return tuple(int("".join(c for c in p if c.isdigit()) or 0) for p in parts[:2])


def imported(torch):
    install(torch)


def install(torch):
    from . import cuda, loaders, optimizers, parallel, precision, processes, record, values

    import torch.utils.checkpoint
    import torch.utils.data

    cuda.install(torch, settings["gpus"])
    precision.install(torch)
    loaders.install(torch)
    parallel.install(torch)
    processes.install(torch)
    optimizers.install(torch)
    record.install(torch)
    quietly(values.install)(torch)  # without it, all tensors have values
    _backward(torch)
    _compile(torch)


def _backward(torch):
    """Gradients are zeros, so nothing is computed or kept."""

    def backward(tensors, *args, **kwargs):
        from . import record

        record.seal()
        tensors = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        with torch.no_grad():
            for p in _leaves(tensors):
                if p.grad is None:
                    p.grad = torch.zeros_like(p)

    torch.autograd.backward = backward
    torch.Tensor.backward = lambda self, *args, **kwargs: backward(self)


def _leaves(tensors):
    """The tensors that get gradients from backward."""
    pending = [t.grad_fn for t in tensors if t.grad_fn is not None]
    yield from (t for t in tensors if t.grad_fn is None and t.requires_grad)
    seen = set(pending)
    while pending:
        node = pending.pop()
        variable = getattr(node, "variable", None)
        if variable is not None:
            yield variable
        for n, _ in node.next_functions:
            if n is not None and n not in seen:
                seen.add(n)
                pending.append(n)


def _compile(torch):
    def compile(model=None, **kwargs):
        if isinstance(model, torch.nn.Module):
            warn("torch.compile was left out: compiled kernels keep less")
        return model if model is not None else (lambda m: m)

    if hasattr(torch, "compile"):
        torch.compile = compile
        torch.nn.Module.compile = lambda self, *args, **kwargs: compile(self) and None


def stepped(optimizer):
    """Is called after an optimizer's step."""
    global steps
    from . import record

    record.step_done()
    steps += 1
    first = steps == 1
    enough = elapsed() > 0.4 * settings["timeout"]
    if _second(optimizer) or (first and enough):
        finish()
    elif first:
        say_partial()


_counts = {}


def _second(optimizer):
    _counts[id(optimizer)] = _counts.get(id(optimizer), 0) + 1
    return _counts[id(optimizer)] >= 2


def say_partial():
    from . import config

    try:
        report.say("partial", config=config.build(), reason="")
    except Exception:  # the program must not see it
        report.say("failed", reason="the probe itself failed: " + _last_line())


def finish(note=""):
    """Sends the last record and ends the process."""
    from . import config

    if not _ending.acquire(False):
        threading.Event().wait()  # another thread is ending the process
    if note:
        warn(note)
    try:
        report.say("result", config=config.build())
    except config.Nothing as e:
        report.say("failed", reason=note or str(e))
    except Exception:
        report.say("failed", reason="the probe itself failed: " + _last_line())
    os._exit(EXIT_DONE)


def give_up(reason):
    """Time is up: sends the present record, or why there is none."""
    from . import ending, processes, record

    if processes.waiting or not record.begun() and ending.has_children():
        return  # another process trains, or will give the reason
    reason = record.inference(late=True) or reason + ending.where()
    if record.whole():
        finish(reason if steps else reason + ": layers and shapes of the forward pass only")
    report.say("failed", reason=record.unfinished() + reason)
    os._exit(EXIT_DONE)


def refuse(reason):
    report.say("failed", reason=reason)
    os._exit(EXIT_DONE)


def _last_line():
    return " ".join(traceback.format_exc().strip().splitlines()[-1].split())[:400]


def quietly(call):
    """Turns a failure of a hook into a warning, so that it never reaches the program."""

    @functools.wraps(call)
    def wrapper(*args, **kwargs):
        try:
            return call(*args, **kwargs)
        except Exception:
            warn("the probe could not see all: " + _last_line())
            return None

    return wrapper
