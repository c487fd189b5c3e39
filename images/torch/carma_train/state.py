"""The checkpoint: one file, replaced in one step, with the settings of its training."""

import contextlib
import os

import torch

from .usage import UsageError

NAME = "checkpoint.pt"


def save(folder, payload):
    """Writes the checkpoint so that a kill at any moment leaves the old one or the new one."""
    path = os.path.join(folder, NAME)
    part = f"{path}.{os.getpid()}.part"
    with open(part, "wb") as f:
        torch.save(payload, f)
        f.flush()
        os.fsync(f.fileno())
    os.replace(part, path)
    at = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(at)
    finally:
        os.close(at)


def load(folder, made_with):
    """The checkpoint in a folder; None: there is none. A missing folder is made."""
    try:
        os.makedirs(folder, exist_ok=True)
        for name in os.listdir(folder):  # left by a save that was killed
            if name.startswith(NAME) and name.endswith(".part"):
                with contextlib.suppress(FileNotFoundError):  # another process was faster
                    os.remove(os.path.join(folder, name))
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError("not writable")
    except OSError as e:
        raise UsageError(f"--checkpoint {folder}: {e.strerror or e}; name a folder that uid {os.getuid()} can write") from None
    path = os.path.join(folder, NAME)
    if not os.path.exists(path):
        return None
    try:
        # Only tensors and plain values. PyTorch 1.13's loader for those does not accept a float.
        payload = torch.load(path, map_location="cpu", weights_only=int(torch.__version__.split(".")[0]) > 1)
        old = payload["made_with"]
    except Exception as e:  # a file that is no checkpoint may raise anything
        raise UsageError(f"{path} cannot be read ({str(e).splitlines()[0][:80]}); remove it or name another folder") from None
    for key, value in made_with.items():
        if old.get(key) != value:
            raise UsageError(f"{path} is of a training with {key} {old.get(key)}, not {value}; remove it or name another folder")
    return payload
