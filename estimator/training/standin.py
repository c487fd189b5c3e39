"""Fake tensors on a GPU that is not there, and the memory that they would take.

start() runs the program again with a stand-in for the CUDA libraries (standin.c), so PyTorch takes its paths for
GPUs: autocast's lists for CUDA, cuDNN's batch norm, fused attention, foreach optimizers. gpu() are the modes in which
tensors are made on that GPU. Nothing is computed. Memory counts the bytes of all storages that live at a time, in
blocks of 512 bytes as PyTorch's allocator gives them out. Workspaces of libraries are not tensors and not counted.
"""
import contextlib
import os
import subprocess
import sys
import tempfile
import weakref

READY = "CARMA_STANDIN"


def start():
    """Runs this program again on the stand-in, once."""
    if not os.environ.get(READY):
        folder = tempfile.mkdtemp()
        source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "standin.c")
        library = os.path.join(folder, "libcuda.so.1")
        subprocess.run(["cc", "-w", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", library, source], check=True)
        path = folder + ":" + os.environ.get("LD_LIBRARY_PATH", "")
        os.environ.update({READY: "1", "LD_PRELOAD": library, "LD_LIBRARY_PATH": path})
        os.execv(sys.executable, [sys.executable, *sys.argv])
    import torch
    import torch._subclasses.fake_tensor as fake

    torch.cuda.is_available = lambda: True
    torch.cuda.device_count = lambda: 1
    torch.cuda._lazy_init = lambda: None
    torch.cuda._initialized = True
    torch.cuda.get_rng_state = lambda device=None: None
    torch.cuda.set_rng_state = lambda state, device=None: None
    torch.cuda.get_device_capability = lambda device=None: (8, 0)
    torch.cuda.is_bf16_supported = lambda *a, **k: True
    torch.amp.autocast_mode.torch.cuda.amp.common.amp_definitely_not_available = lambda: False
    fake.init_gpu_context = lambda device: None
    torch.autograd.set_multithreading_enabled(False)  # there are no threads for the GPU


def modes():
    import torch
    from torch.overrides import TorchFunctionMode
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    factories = {getattr(torch, name) for name in "empty zeros ones full rand randn randint randperm arange linspace eye logspace".split()}

    class OnGPU(TorchFunctionMode):
        """Makes tensors on the GPU, where the program does not say otherwise."""

        def __torch_function__(self, func, types, args=(), kwargs=None):
            kwargs = dict(kwargs or {})
            if func in (torch.tensor, torch.as_tensor, torch.Tensor.to, torch.Tensor.cuda) and not isinstance(args[0], torch.Tensor):
                device = kwargs.pop("device", None)
                small = func(*args, device="cpu", **kwargs)
                return small if str(device) == "cpu" else torch.empty(small.shape, dtype=small.dtype, device="cuda")
            if func is torch.Tensor.__getitem__ and isinstance(args[1], list):  # it would copy real numbers to the GPU
                return torch.index_select(args[0], 0, torch.empty(len(args[1]), dtype=torch.int64, device=args[0].device))
            if func in factories and kwargs.get("device") is None:
                kwargs["device"] = "cuda"
            return func(*args, **kwargs)

    class Memory(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.now = self.peak = 0
            self.live = {}
            self.share = 0.03

        def note(self, t):
            if not isinstance(t, torch.Tensor) or t.device.type != "cuda":
                return
            storage = t.untyped_storage()
            key = storage._cdata
            if key in self.live:
                return
            self.live[key] = (storage.nbytes() + 511) // 512 * 512
            self.now += self.live[key]
            self.peak = max(self.peak, self.now)
            weakref.finalize(storage, self.end, key)

        def end(self, key):
            self.now -= self.live.pop(key, 0)

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func is torch.ops.aten.nonzero.default:  # its size depends on values: share of the numbers
                x = args[0]
                out = torch.empty(max(1, int(x.numel() * self.share)), x.dim(), dtype=torch.int64, device=x.device)
            else:
                out = func(*args, **(kwargs or {}))
            for t in tree_leaves(out):
                self.note(t)
            return out

    return OnGPU, Memory


@contextlib.contextmanager
def gpu():
    """The modes in which a training runs; gives the counter of memory."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    on_gpu, memory = modes()
    counter = memory()
    with FakeTensorMode(allow_non_fake_inputs=True), on_gpu(), counter:
        yield counter


def count(memory, *modules):
    """Counts the tensors of modules that were made."""
    for module in modules:
        for t in list(module.parameters()) + list(module.buffers()):
            memory.note(t)


def fill(table, peak):
    """Fills the column peak_bytes of a table where it is empty, each row in a process of its own. peak is given a row."""
    import csv

    rows = list(csv.DictReader(line for line in open(table) if not line.startswith("#")))
    if len(sys.argv) > 2:
        start()
        print(peak(rows[int(sys.argv[2])]))
        return
    head = [line for line in open(table) if line.startswith("#")]
    for i, row in enumerate(rows):
        if row["peak_bytes"]:
            continue
        done = subprocess.run([sys.executable, sys.argv[0], table, str(i)], stdout=subprocess.PIPE, text=True)
        row["peak_bytes"] = done.stdout.strip().split("\n")[-1]
        print(*row.values(), file=sys.stderr, flush=True)
        with open(table, "w", newline="") as f:
            f.writelines(head)
            w = csv.DictWriter(f, rows[0].keys(), lineterminator="\n")
            w.writeheader()
            w.writerows(rows)
