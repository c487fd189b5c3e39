"""The probe's root and mounts are read-only, but programs make folders for
their logs and checkpoints before they train. Files that cannot be written go
to the scratch folder instead."""

import builtins
import errno
import os

SHADOW = os.path.join(os.environ.get("TMPDIR") or "/tmp", "carma-shadow")
_REFUSED = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC)


def _shadow(path):
    try:
        path = os.fsdecode(path)
    except TypeError:
        return None
    full = os.path.abspath(path)
    if full.startswith(SHADOW):
        return None
    return SHADOW + full


def _twice(call, parents):
    def wrapper(path, *args, **kwargs):
        shadow = _shadow(path) if not isinstance(path, int) else None
        try:
            return call(path, *args, **kwargs)
        except OSError as e:
            missing = e.errno == errno.ENOENT and shadow and os.path.isdir(os.path.dirname(shadow))
            if shadow is None or not (missing or e.errno in _REFUSED):
                raise
            real_makedirs(parents(shadow), exist_ok=True)
            return call(shadow, *args, **kwargs)

    return wrapper


real_makedirs = os.makedirs


def install():
    real_mkdir, real_open = os.mkdir, builtins.open

    def opener(path, mode="r", *args, **kwargs):
        call = real_open if set(mode) & set("wax+") else None
        if call is None:
            return _read(real_open, path, mode, *args, **kwargs)
        return _twice(real_open, os.path.dirname)(path, mode, *args, **kwargs)

    def makedirs(name, mode=0o777, exist_ok=False):
        try:
            return real_makedirs(name, mode, exist_ok)
        except OSError as e:
            shadow = _shadow(name)
            if shadow is None or e.errno not in _REFUSED:
                raise
            return real_makedirs(shadow, mode, True)

    os.mkdir = _twice(real_mkdir, os.path.dirname)
    os.makedirs = makedirs
    builtins.open = opener
    import io

    io.open = opener


def _read(real_open, path, mode, *args, **kwargs):
    try:
        return real_open(path, mode, *args, **kwargs)
    except FileNotFoundError:
        shadow = None if isinstance(path, int) else _shadow(path)
        if shadow is None or not os.path.exists(shadow):
            raise
        return real_open(shadow, mode, *args, **kwargs)
