"""The probe's messages: numbered lines on the container's standard error.

A line is the mark, the process, the record's number, the piece's number, "."
or "$" for the last piece, and base64 of compressed JSON. Pieces are short
enough for one write, so lines of other threads cannot get into them.
"""

import base64
import json
import os
import zlib

PIECE = 3000
_fd = None
_mark = ""
_count = 0
inherited = -1  # the channel of the run before in this process
final = False  # nothing is sent after the final record


def open_channel(mark):
    global _fd, _mark
    _mark = mark
    try:
        _fd = inherited if inherited >= 0 else os.dup(2)  # the program may put another file there
        os.set_inheritable(_fd, False)
    except OSError:
        _fd = None


def silence():
    """Sends nothing from now on."""
    global final
    final = True


def keep_channel():
    """Leaves the channel to the program that this process runs next."""
    if _fd is not None:
        os.set_inheritable(_fd, True)
    os.environ["CARMA_PROBE_FD"] = str(-1 if _fd is None else _fd)


def say(kind, **fields):
    """Kinds: partial (better than nothing), result, failed (with a reason)."""
    global _count, final
    if _fd is None or final:
        return
    final = kind == "result"
    _count += 1
    record = dict(fields, kind=kind, pid=os.getpid())
    text = base64.b64encode(zlib.compress(json.dumps(record).encode(), 6)).decode()
    pieces = [text[i:i + PIECE] for i in range(0, len(text), PIECE)] or [""]
    for i, piece in enumerate(pieces):
        end = "$" if i == len(pieces) - 1 else "."
        line = "\n%s %d %d %d %s %s\n" % (_mark, os.getpid(), _count, i, end, piece)
        try:
            os.write(_fd, line.encode())
        except OSError:
            return
