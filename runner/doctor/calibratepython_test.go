package doctor

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"carma/estimator/environment"
)

// fakeTorch simulates PyTorch on a GPU. The GPU's memory is represented by files in a folder,
// one for each process: a context of 500 MiB, 24 MiB for cuBLAS plus a workspace of 8 MiB, 20
// MiB for cuDNN, and 100 MiB for NCCL. The cache takes memory in pieces of 2 MiB.
const fakeTorch = `
import os, sys, types
folder, count = os.environ["FAKE_GPU"], int(os.environ.get("FAKE_COUNT", "1"))
__version__ = "2.0-fake"
version = types.SimpleNamespace(cuda="13.0")
MIB = 1 << 20
taken, cached, allocated = 0, 0, 0

def grow(context=0, cache=0, bytes=0):
    global taken, cached, allocated
    taken, cached, allocated = taken + context, cached + cache, allocated + bytes
    with open(os.path.join(folder, str(os.getpid())), "w") as f:
        f.write(str(taken + cached))

def start():
    if taken == 0:
        grow(context=500 * MIB)

class Tensor:
    def __init__(self, n):
        start()
        self.n = n
        grow(cache=2 * MIB, bytes=4 * n)
    def numel(self): return self.n
    def element_size(self): return 4
    def __matmul__(self, other):
        grow(context=24 * MIB, cache=8 * MIB, bytes=8 * MIB)
        return Tensor(self.n)
    def sum(self): return self
    def backward(self): pass

def zeros(*shape, device=None): return ones(*shape)
def ones(*shape, device=None):
    n = 1
    for d in shape: n *= d
    return Tensor(n)
randn = ones

class Conv2d:
    def __init__(self, *a): pass
    def to(self, device): return self
    def __call__(self, x):
        grow(context=20 * MIB)
        return x
nn = types.SimpleNamespace(Conv2d=Conv2d)

def mem_get_info(i):
    used = 0
    for name in os.listdir(folder):
        if os.path.exists("/proc/" + name):
            with open(os.path.join(folder, name)) as f:
                used += int(f.read() or 0)
    if os.environ.get("FAKE_NEIGHBOUR"):
        globals()["noise"] = 2 * globals().get("noise", 0) + 50 * MIB
        used += noise
    return (80 << 30) - used, 80 << 30

cuda = types.SimpleNamespace(
    is_available=lambda: count > 0, device_count=lambda: count, synchronize=lambda: None, mem_get_info=mem_get_info,
    memory_reserved=lambda i: cached, memory_allocated=lambda i: allocated, nccl=types.SimpleNamespace(all_reduce=lambda ts: grow(context=100 * MIB)))
`

// TestCalibrateProgram runs the program with a PyTorch that simulates a GPU. No figure may
// include the memory of tensors and the cache. A neighbour that takes memory meanwhile, no GPU
// and no PyTorch are reported.
func TestCalibrateProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("takes more than half a second")
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "torch.py"), []byte(fakeTorch), 0o600); err != nil {
		t.Fatal(err)
	}
	measure := func(env ...string) (environment.Measured, error) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), python, "-c", calibrateProgram)
		cmd.Env = append(os.Environ(), append([]string{"CARMA_PROGRAM=" + calibrateProgram, "FAKE_GPU=" + t.TempDir()}, env...)...)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return environment.ReadMeasured(strings.Split(string(out), "\n"))
	}
	const mib = 1 << 20
	want := environment.Measured{Context: 524 * mib, CuDNN: 20 * mib, CuBLAS: 8 * mib, Torch: "2.0-fake", CUDA: "13.0"}
	here := "PYTHONPATH=" + dir
	if m, err := measure(here); err != nil || m != want {
		t.Errorf("on one GPU %+v, %v; want %+v", m, err, want)
	}
	want.NCCL = 100 * mib
	if m, err := measure(here, "FAKE_COUNT=2"); err != nil || m != want {
		t.Errorf("on two GPUs %+v, %v; want %+v", m, err, want)
	}
	if _, err := measure(here, "FAKE_NEIGHBOUR=1"); err == nil || !strings.Contains(err.Error(), "somebody else used the GPU") {
		t.Errorf("beside a neighbour: %v", err)
	}
	if _, err := measure(here, "FAKE_COUNT=0"); err == nil || !strings.Contains(err.Error(), "PyTorch 2.0-fake in the image sees no GPU") {
		t.Errorf("without a GPU: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "torch.py"), []byte("raise ImportError('none')"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := measure(here); err == nil || !strings.Contains(err.Error(), "the image has no PyTorch (none)") {
		t.Errorf("without PyTorch: %v", err)
	}
}
