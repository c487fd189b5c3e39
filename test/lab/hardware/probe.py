"""Makes a CUDA context step by step. After each step it prints a line and waits for one.

    python probe.py          on the GPU that CUDA_VISIBLE_DEVICES names
    python probe.py cpu      versions only
"""

import importlib.metadata
import json
import os
import platform
import sys

PACKAGES = ("torch", "torchvision", "timm", "transformers", "triton", "numpy")


def say(stage, **more):
    print(json.dumps(dict(more, stage=stage)), flush=True)
    sys.stdin.readline()


def versions():
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    return found


def folders(torch):
    """The folders that a container needs to run this Python."""
    return sorted({os.path.realpath(p) for p in (sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.dirname(torch.__file__), os.path.dirname(sys.executable))}
                  | {os.path.realpath(sys.executable), sys.prefix, sys.executable})


def main():
    import torch

    cuda = sys.argv[1:] != ["cpu"] and torch.cuda.is_available()
    say("imported", versions=versions(), folders=folders(torch), executable=sys.executable, cuda=torch.version.cuda or "", gpu=cuda)
    if not cuda:
        return
    reserved = lambda: torch.cuda.memory_reserved(0)
    kept = torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    p = torch.cuda.get_device_properties(0)
    say("context", reserved=reserved(), name=p.name, multiprocessors=p.multi_processor_count, total=p.total_memory,
        capability=f"{p.major}.{p.minor}", cudnn=str(torch.backends.cudnn.version()))
    a = torch.randn(256, 256, device="cuda")
    kept = a @ a
    torch.cuda.synchronize()
    say("cublas", reserved=reserved())
    conv = torch.nn.Conv2d(8, 8, 3).cuda()
    conv(torch.randn(2, 8, 32, 32, device="cuda")).sum().backward()
    torch.cuda.synchronize()
    say("cudnn", reserved=reserved())
    del kept


if __name__ == "__main__":
    main()
