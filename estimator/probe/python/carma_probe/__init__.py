"""carma's probe: what does this training program put on a GPU?

The program runs unchanged on the CPU and is told that it has a GPU. Its first
training steps are recorded (layers, shapes, what autograd keeps, the
optimizer) and it is ended. No gradient is computed and nothing is kept for
one, so a step costs little more memory than inference.

Python 3.7 and PyTorch 1.13 are enough. Nothing here may disturb a program
that does not train: it fails with its own error or ends by itself.
"""

import atexit
import importlib.abc
import importlib.machinery
import os
import sys
import threading
import time

from . import report

EXIT_DONE = 86  # the exit code of a process that has said all it can

settings = {"timeout": 120.0, "gpus": 1, "memory": 0}
began = time.monotonic()
_torch_seen = False


def start():
    mark = os.environ.pop("CARMA_PROBE")
    os.environ["CARMA_PROBE"] = mark  # programs started by this one are probed too
    for key, of in (("timeout", float), ("gpus", int), ("memory", int)):
        try:
            settings[key] = of(os.environ["CARMA_PROBE_" + key.upper()])
        except (KeyError, ValueError):
            pass
    report.open_channel(mark)
    from . import files

    files.install()
    sys.meta_path.insert(0, _Finder())
    _watch_end()


class _Finder(importlib.abc.MetaPathFinder):
    """Runs our hooks when torch has been imported."""

    busy = False

    def find_spec(self, name, path=None, target=None):
        if name != "torch" or self.busy:
            return None
        self.busy = True
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.busy = False
        if spec is None or spec.loader is None:
            return spec
        run = spec.loader.exec_module

        def exec_module(module):
            global _torch_seen
            _torch_seen = True
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            run(module)
            from . import hooks

            hooks.install(module)

        spec.loader.exec_module = exec_module
        return spec


def _watch_end():
    """A reason is given however the program ends."""
    show = sys.excepthook

    def failed(kind, value, trace):
        if kind is ModuleNotFoundError and getattr(value, "name", "") == "torch":
            report.say("failed", reason="no PyTorch in the image")
        elif not issubclass(kind, KeyboardInterrupt):
            text = " ".join(("%s: %s" % (kind.__name__, value)).split())
            report.say("failed", reason="the program failed: " + text[:400])
        show(kind, value, trace)

    sys.excepthook = failed

    def ended():
        if not _torch_seen:
            report.say("ended", reason="the program ended without importing PyTorch")
        else:
            report.say("ended", reason="the program ended before its second optimizer step" if _steps() else
                       "the program ended without an optimizer step")

    atexit.register(ended)
    timer = threading.Timer(settings["timeout"], _too_late)
    timer.daemon = True
    timer.start()


def _steps():
    from . import hooks

    return hooks.steps


def _too_late():
    limit = "%g s" % settings["timeout"]
    if not _torch_seen:
        report.say("failed", reason="PyTorch was not imported within " + limit)
        return  # this may be a launcher; another process may train
    from . import hooks

    hooks.give_up("no optimizer step within " + limit)


def elapsed():
    return time.monotonic() - began
