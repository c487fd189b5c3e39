"""Starts the program again from its beginning, now with values in all tensors."""

import os
import sys

from . import report
from .state import elapsed, settings

_why = ""


def possible(size):
    """Whether tensors of so many bytes fit, twice and with what else there is,
    and time is left."""
    memory = settings["memory"]
    return settings["fake"] and (not memory or size < memory * 0.4) and elapsed() < 0.5 * settings["timeout"]


def with_values(why, size):
    """Does not return, unless the program is too large or it is too late."""
    if not possible(size):
        return
    command = _command()
    if not command:
        return
    os.environ.update(CARMA_PROBE_FAKE="0", CARMA_PROBE_WHY=why[:200], CARMA_PROBE_ELAPSED="%.1f" % elapsed(),
                      CARMA_PROBE_PID=str(os.getpid()))
    report.keep_channel()
    os.execv(sys.executable, command)


def _command():
    """The command line of this process, as the kernel has it."""
    try:
        with open("/proc/self/cmdline", "rb") as f:
            return [os.fsdecode(a) for a in f.read().split(b"\0")[:-1]]
    except OSError:
        return None
