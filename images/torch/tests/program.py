"""Runs the training program as a process, as an image does."""

import json
import os
import signal
import subprocess
import sys

FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ENV = dict(os.environ, PYTHONPATH=FOLDER, OMP_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1", PYTHONUNBUFFERED="1")
ENV.pop("CARMA_BATCH_SIZE", None)


def start(*args, module="carma_train", env=None):
    command = [sys.executable, "-m", module, *map(str, args)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(ENV, **env or {}), cwd=FOLDER)


def run(*args, module="carma_train", env=None):
    """Exit code, output, errors."""
    p = start(*args, module=module, env=env)
    out, err = p.communicate()
    return p.returncode, out, err


def train(*args, stop_at=None, signal=signal.SIGTERM):
    """Runs a training that prints each step; with stop_at it gets the signal after that step.

    Returns exit code, losses by step, result."""
    p = start(*args, "--device", "cpu", "--report", 0)
    losses, result = {}, None
    for line in p.stdout:
        words = line.split()
        if words[0] == "step":
            losses[int(words[1])] = words[3]
            if int(words[1]) == stop_at:
                p.send_signal(signal)
        elif words[0] == "result":
            result = json.loads(line[len("result "):])
    err = p.stderr.read()
    if p.wait() not in (0, 75, 143):
        raise AssertionError(err)
    p.stdout.close()
    p.stderr.close()
    return p.returncode, losses, result
