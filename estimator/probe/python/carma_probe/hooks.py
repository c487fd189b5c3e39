"""What is replaced in PyTorch so that the program's first steps tell all."""

import functools
import os
import threading
import traceback

from . import EXIT_DONE, elapsed, report, settings

steps = 0  # optimizer steps so far
warnings = []
train = {"loader_batch": 0, "amp": False, "dtype": "", "parallel": "", "optimizer": None, "checkpointing": False}
_ending = threading.Lock()


def warn(text):
    if text not in warnings and len(warnings) < 20:
        warnings.append(text)


def install(torch):
    from . import cuda, loaders, optimizers, parallel, precision, record

    import torch.utils.checkpoint
    import torch.utils.data

    cuda.install(torch, settings["gpus"])
    precision.install(torch)
    loaders.install(torch)
    parallel.install(torch)
    optimizers.install(torch)
    record.install(torch)
    _backward(torch)
    _compile(torch)


def _backward(torch):
    """Gradients are zeros: nothing needs to be computed, or kept."""

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
    """The tensors that backward would give gradients."""
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
        warn("torch.compile was left out: compiled kernels keep less")
        return model if model is not None else (lambda m: m)

    if hasattr(torch, "compile"):
        torch.compile = compile
        torch.nn.Module.compile = lambda self, *args, **kwargs: None


def stepped(optimizer):
    """After an optimizer's step."""
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
    """The last record, and the end of the process."""
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
    """Time is up: what there is, or why there is nothing."""
    from . import record

    if record.have():
        finish(reason + ": layers and shapes of the forward pass only" if not steps else reason)
    report.say("failed", reason=reason)
    os._exit(EXIT_DONE)


def _last_line():
    return " ".join(traceback.format_exc().strip().splitlines()[-1].split())[:400]


def quietly(call):
    """A hook's own fault is a warning, never the program's."""

    @functools.wraps(call)
    def wrapper(*args, **kwargs):
        try:
            return call(*args, **kwargs)
        except Exception:
            warn("the probe could not see all: " + _last_line())
            return None

    return wrapper
