"""The reasons why a program gave no record, however it ends."""

import atexit
import os
import sys
import threading

from . import frameworks, report

_HERE = os.path.dirname(os.path.abspath(__file__))


def install():
    show = sys.excepthook

    def failed(kind, value, trace):
        show(kind, value, trace)
        if not issubclass(kind, KeyboardInterrupt):
            sys.stderr.flush()
            _failed(kind, value)

    sys.excepthook = failed
    atexit.register(_ended)


def _failed(kind, value):
    from . import state

    text = " ".join(("%s: %s" % (kind.__name__, value)).split())[:400]
    if state.torch_seen:
        from . import rerun, values

        if values.made:  # perhaps only because values are not there
            rerun.with_values("it failed: " + text, values.made)
    missing = kind is ModuleNotFoundError and frameworks.missing(getattr(value, "name", ""))
    if kind.__name__ == "ChildFailedError":  # a launcher's; the process has said why
        report.say("ended", reason="a process that the launcher started failed")
    else:
        report.say("failed", reason=missing or "the program failed: " + text)


def _ended():
    from . import state

    if not state.torch_seen:
        report.say("ended", reason=frameworks.refusal() or "the program ended without importing PyTorch")
        return
    from . import hooks, record

    if hooks.steps:
        reason = "the program ended before its second optimizer step"
    else:
        reason = record.inference() or frameworks.refusal() or "the program ended without an optimizer step"
    report.say("ended", reason=reason)


def where():
    """What the program is doing, for a reason; empty: not known."""
    frame = sys._current_frames().get(threading.main_thread().ident)
    if frame is None:
        return ""
    inner, own = frame, None
    while frame is not None:
        name = frame.f_code.co_filename
        ours = name.startswith(_HERE)
        if ours and inner is frame:
            inner = frame.f_back or frame
        if own is None and not ours and "-packages" not in name and "/lib/python" not in name and not name.startswith("<"):
            own = frame
        frame = frame.f_back
    places = [_place(f) for f in (own, inner) if f is not None]
    return "; it was at " + ", in ".join(dict.fromkeys(places)) if places else ""


def _place(frame):
    return "%s:%d (%s)" % (os.path.basename(frame.f_code.co_filename), frame.f_lineno, frame.f_code.co_name)


def has_children():
    """Whether this process has started others that still run."""
    try:
        for thread in os.listdir("/proc/self/task"):
            with open("/proc/self/task/%s/children" % thread) as f:
                if f.read().strip():
                    return True
    except OSError:
        pass
    return False
