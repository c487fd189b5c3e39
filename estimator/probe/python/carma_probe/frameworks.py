"""Programs of other frameworks are refused with a reason, at their first step."""

from . import report
from .state import EXIT_DONE

_NAMES = {"jax": "JAX", "tensorflow": "TensorFlow", "mxnet": "MXNet", "paddle": "PaddlePaddle"}
seen = ""


def _refuse(name):
    import os

    report.say("failed", reason="the program trains with %s: only programs of PyTorch can be probed" % name)
    os._exit(EXIT_DONE)


def jax(module):
    _note("jax")
    for name in ("grad", "value_and_grad"):
        if hasattr(module, name):
            setattr(module, name, lambda *args, **kwargs: _refuse("JAX"))


def tensorflow(module):
    _note("tensorflow")
    try:
        module.GradientTape.__enter__ = lambda self: _refuse("TensorFlow")
        module.keras.Model.fit = lambda self, *args, **kwargs: _refuse("TensorFlow")
    except AttributeError:
        pass


def other(module):
    _note(module.__name__)


def _note(name):
    global seen
    seen = _NAMES.get(name, name)


def refusal():
    """The reason if the program uses another framework."""
    return "the program uses %s: only programs of PyTorch can be probed" % seen if seen else ""


def missing(name):
    """The reason if the module of a framework is not in the image."""
    if name == "torch":
        return "no PyTorch in the image"
    if name in _NAMES:
        return "the program needs %s, which is not in the image: only programs of PyTorch can be probed" % _NAMES[name]
    return ""
