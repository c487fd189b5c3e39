"""carma's probe finds out what a training program puts on a GPU.

The program runs unchanged on the CPU and is told that it has a GPU. Its first
training steps are recorded (layers, shapes, what autograd keeps, the
optimizer) and it is ended. No gradient is computed and nothing is kept for
one, so a step costs little more memory than inference.

Python 3.7 and PyTorch 1.13 are enough. Nothing here may disturb a program
that does not train: it fails with its own error or ends by itself.
"""

import importlib.abc
import importlib.machinery
import os
import sys
import threading
import time

from . import ending, report, state


def start():
    mark = os.environ.pop("CARMA_PROBE")
    os.environ["CARMA_PROBE"] = mark  # programs started by this one are probed too
    for key, of in (("timeout", float), ("gpus", int), ("memory", int), ("fake", int)):
        try:
            state.settings[key] = of(os.environ["CARMA_PROBE_" + key.upper()])
        except (KeyError, ValueError):
            pass
    _again()
    report.open_channel(mark)
    from . import files

    files.install()
    sys.meta_path.insert(0, _Finder())
    _watch_end()


def _again():
    """Takes over from the run before, if this is the second of this process."""
    given = {k: os.environ.pop("CARMA_PROBE_" + k, "") for k in ("PID", "ELAPSED", "WHY", "FD")}
    if given["PID"] == str(os.getpid()):
        state.began, state.why_again = time.monotonic() - float(given["ELAPSED"]), given["WHY"]
        report.inherited = int(given["FD"])


# What runs after the import of a module: a module of ours and its function.
_AFTER = {
    "torch": ("hooks", "imported"), "torch.distributed.fsdp": ("sharding", "fsdp"),
    "accelerate.utils.fsdp_utils": ("sharding", "accelerate"), "deepspeed": ("sharding", "deepspeed"),
    "bitsandbytes": ("quantized", "bitsandbytes"), "safetensors": ("weights", "safetensors"), "jax": ("frameworks", "jax"),
    "tensorflow": ("frameworks", "tensorflow"), "mxnet": ("frameworks", "other"), "paddle": ("frameworks", "other"),
}


class _Finder(importlib.abc.MetaPathFinder):
    """Runs our hooks when one of these modules has been imported."""

    busy = set()

    def find_spec(self, name, path=None, target=None):
        if name not in _AFTER or name in self.busy:
            return None
        self.busy.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.busy.discard(name)
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def exec_module(module):
            state.torch_seen = state.torch_seen or name == "torch"
            run(module)
            place, call = _AFTER[name]
            getattr(importlib.import_module("carma_probe." + place), call)(module)

        spec.loader.exec_module = exec_module
        return spec


def _watch_end():
    """Gives a reason, however the program ends."""
    ending.install()
    timer = threading.Timer(max(1, state.settings["timeout"] - state.elapsed()), _too_late)
    timer.daemon = True
    timer.start()


def _too_late():
    limit = "%g s" % state.settings["timeout"]
    if not state.torch_seen:
        from . import frameworks

        report.say("failed", reason=frameworks.refusal() or "PyTorch was not imported within " + limit + ending.where())
        return  # this may be a launcher; another process may train
    from . import hooks

    hooks.give_up("no optimizer step within " + limit)
