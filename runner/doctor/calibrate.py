"""Measures what a process takes of a GPU beside its tensors: carma doctor --calibrate.

One process watches how much of the GPU is in use; another one loads the libraries, one after the other, and says
after each what PyTorch's allocator has of it. The rest of the growth is the library's. All of it is done twice.
"""

import json
import os
import subprocess
import sys
import time

MARK = "carma-calibrate "


def tell(**figures):
    print(MARK + json.dumps(figures), flush=True)


def load():
    """Goes from stage to stage; at each, it says what tensors and PyTorch's cache have, and waits."""
    import torch

    def at(stage, workspace=0):
        torch.cuda.synchronize()
        print(json.dumps({"stage": stage, "reserved": torch.cuda.memory_reserved(0), "workspace": workspace}), flush=True)
        sys.stdin.readline()

    kept = [torch.zeros(1, device="cuda:0")]
    at("context")
    a = torch.ones(256, 256, device="cuda:0")
    before = torch.cuda.memory_allocated(0)
    product = a @ a
    at("cublas", torch.cuda.memory_allocated(0) - before - product.numel() * product.element_size())
    convolution = torch.nn.Conv2d(8, 8, 3).to("cuda:0")
    convolution(torch.randn(2, 8, 32, 32, device="cuda:0")).sum().backward()
    at("cudnn")
    if torch.cuda.device_count() > 1:
        kept += [torch.ones(1 << 20, device="cuda:%d" % i) for i in (0, 1)]
        torch.cuda.nccl.all_reduce(kept[1:])
        at("nccl")


def watch():
    """Runs load in another process, and returns what each stage takes beside tensors."""
    import torch

    def used():
        free, total = torch.cuda.mem_get_info(0)
        return total - free

    base = used()
    child = subprocess.Popen([sys.executable, "-c", os.environ["CARMA_PROGRAM"], "load"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    takes = {}
    for line in child.stdout:
        if not line.startswith("{"):
            continue
        stage = json.loads(line)
        time.sleep(0.2)
        takes[stage["stage"]] = used() - base - stage["reserved"]
        if stage["stage"] == "cublas":
            takes["workspace"] = stage["workspace"]
        child.stdin.write("\n")
        child.stdin.flush()
    if child.wait() != 0 or "cudnn" not in takes:
        raise RuntimeError("the program that loads the libraries ended with code %d" % child.returncode)
    time.sleep(0.5)
    return takes


def main():
    try:
        import torch
    except ImportError as e:
        return tell(error="the image has no PyTorch (%s); name one that has" % e)
    if not torch.cuda.is_available():
        return tell(error="PyTorch %s in the image sees no GPU; is it a build for CUDA?" % torch.__version__)
    torch.zeros(1, device="cuda:0")
    first, second = watch(), watch()
    more = {"nccl": max(0, second["nccl"] - second["cudnn"])} if "nccl" in second else {}
    tell(context=second["cublas"], cudnn=second["cudnn"] - second["cublas"], cublas=second["workspace"],
         spread=max(abs(second[k] - first[k]) for k in second), torch=torch.__version__, cuda=torch.version.cuda or "", **more)


if __name__ == "__main__":
    if sys.argv[1:] == ["load"]:
        load()
    else:
        main()
