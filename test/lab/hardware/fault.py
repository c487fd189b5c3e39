"""A task that does one thing on the GPU, well or badly. Arguments: NAME DEVICE KIND GIB SECONDS.

hold     allocates GIB and computes a little for SECONDS
oom      the same, in pieces of 1 GiB; without a GPU it prints PyTorch's message, the first time
illegal  indexes out of bounds
"""

import os
import sys
import time

import torch

name, device, kind, gib, seconds = sys.argv[1:6]
cpu = device == "cpu"
small = torch.randn(512, 512, device=device)


def compute(seconds):
    end = time.time() + seconds
    while time.time() < end:
        (small @ small).sum().item()
        time.sleep(0.02)


if kind == "illegal":
    print("ready", flush=True)
    if cpu:
        raise RuntimeError("CUDA error: device-side assert triggered")
    time.sleep(2)
    small[torch.tensor([1 << 20], device=device)].sum().item()
if kind == "oom" and cpu and not os.path.exists("/tmp/tried-" + name):
    open("/tmp/tried-" + name, "w").close()
    raise RuntimeError("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1024.00 MiB")
pieces = [] if cpu else [torch.zeros(1 << 30, dtype=torch.uint8, device=device) for _ in range(int(gib))]
print("ready", len(pieces), flush=True)
compute(float(seconds))
print("done", flush=True)
