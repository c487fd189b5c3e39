"""How the probe speaks: numbered lines on the container's standard error.

A line is the mark, the process, the record's number, the piece's number, "."
or "$" for the last piece, and base64 of compressed JSON. Pieces are short
enough to be written at once, so lines of other threads cannot get into them.
"""

import base64
import json
import os
import zlib

PIECE = 3000
_fd = None
_mark = ""
_count = 0
final = False  # nothing is said after the final record


def open_channel(mark):
    global _fd, _mark
    _mark = mark
    try:
        _fd = os.dup(2)  # the program may put another file there
    except OSError:
        _fd = None


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
