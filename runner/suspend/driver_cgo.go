//go:build cgo

package suspend

// The prototypes and the sizes of the structures are from the CUDA driver API, "CUDA
// Checkpointing" and "Data types used by CUDA driver". All args structures have 64 bytes,
// and unused parts must be zero. Their layouts differ in the reserved part only
// (NVIDIA/cuda-python#2144): the pairs of CUcheckpointRestoreArgs are its first 12 bytes
// since CUDA 13.0 (driver 580), and reserved before.

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef struct { unsigned int timeoutMs, reserved0; unsigned long long reserved1[7]; } lock_args;
typedef struct { unsigned char oldUuid[16], newUuid[16]; } gpu_pair;
typedef struct { gpu_pair *gpuPairs; unsigned int gpuPairsCount; char reserved[52]; } restore_args;
_Static_assert(sizeof(lock_args) == 64, "CUcheckpointLockArgs");
_Static_assert(sizeof(gpu_pair) == 32, "CUcheckpointGpuPair");
_Static_assert(sizeof(void *) != 8 || sizeof(restore_args) == 64, "CUcheckpointRestoreArgs");

static int call_init(void *f) { return ((int (*)(unsigned int))f)(0); }
static int call_version(void *f, int *version) { return ((int (*)(int *))f)(version); }
static int call_state(void *f, int pid, int *state) { return ((int (*)(int, int *))f)(pid, state); }
static int call_lock(void *f, int pid, unsigned int ms) {
	lock_args a;
	memset(&a, 0, sizeof a);
	a.timeoutMs = ms;
	return ((int (*)(int, lock_args *))f)(pid, &a);
}
static int call_plain(void *f, int pid) { return ((int (*)(int, void *))f)(pid, NULL); }
static int call_restore(void *f, int pid, gpu_pair *pairs, unsigned int n) {
	restore_args a;
	memset(&a, 0, sizeof a);
	a.gpuPairs = pairs;
	a.gpuPairsCount = n;
	return ((int (*)(int, restore_args *))f)(pid, n ? &a : NULL);
}
*/
import "C"

import (
	"fmt"
	"unsafe"
)

// symbols maps calls to the driver's functions.
var symbols = map[Call]string{
	CallInit:       "cuInit",
	CallState:      "cuCheckpointProcessGetState",
	CallLock:       "cuCheckpointProcessLock",
	CallCheckpoint: "cuCheckpointProcessCheckpoint",
	CallRestore:    "cuCheckpointProcessRestore",
	CallUnlock:     "cuCheckpointProcessUnlock",
}

// driver is the loaded library. Its calls may run at the same time.
type driver struct {
	functions map[Call]unsafe.Pointer
	cuda      int // version of CUDA, such as 12080 for 12.8, or 0 if unknown
}

// openDriver loads the library and calls cuInit, which restore needs unless the GPUs
// are in persistence mode. The library stays loaded.
func openDriver(path string) (*driver, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	handle := C.dlopen(name, C.RTLD_NOW|C.RTLD_LOCAL)
	if handle == nil {
		return nil, fmt.Errorf("the NVIDIA driver's library cannot be loaded: %s", C.GoString(C.dlerror()))
	}
	d := &driver{functions: map[Call]unsafe.Pointer{}}
	for call, symbol := range symbols {
		f := lookUp(handle, symbol)
		if f == nil {
			return nil, fmt.Errorf("%s has no %s: the NVIDIA driver is older than %d", path, symbol, firstDriver)
		}
		d.functions[call] = f
	}
	if code := Code(C.call_init(d.functions[CallInit])); code != 0 {
		return nil, fmt.Errorf("cuInit: %v", code)
	}
	if f := lookUp(handle, "cuDriverGetVersion"); f != nil {
		var version C.int
		if C.call_version(f, &version) == 0 {
			d.cuda = int(version)
		}
	}
	return d, nil
}

func lookUp(handle unsafe.Pointer, symbol string) unsafe.Pointer {
	name := C.CString(symbol)
	defer C.free(unsafe.Pointer(name))
	return C.dlsym(handle, name)
}

// call makes one call, and returns when the driver's function returns.
func (d *driver) call(r request) (State, Code, error) {
	f, pid := d.functions[r.Call], C.int(r.PID)
	switch r.Call {
	case CallState:
		state := C.int(-1)
		code := Code(C.call_state(f, pid, &state))
		return State(state), code, nil
	case CallLock:
		return 0, Code(C.call_lock(f, pid, C.uint(r.TimeoutMS))), nil
	case CallCheckpoint, CallUnlock:
		return 0, Code(C.call_plain(f, pid)), nil
	case CallRestore:
		return d.restore(f, r)
	}
	return 0, 0, fmt.Errorf("no call %q", r.Call)
}

func (d *driver) restore(f unsafe.Pointer, r request) (State, Code, error) {
	if err := checkPairs(r.Pairs); err != nil {
		return 0, 0, err
	}
	// The list is in C's memory, because it is passed inside another structure.
	list := (*C.gpu_pair)(C.calloc(C.size_t(len(r.Pairs)+1), C.sizeof_gpu_pair))
	defer C.free(unsafe.Pointer(list))
	pairs := unsafe.Slice(list, len(r.Pairs))
	for i, p := range r.Pairs {
		from, _ := parseUUID(p.Old)
		to, _ := parseUUID(p.New)
		for k := range from {
			pairs[i].oldUuid[k], pairs[i].newUuid[k] = C.uchar(from[k]), C.uchar(to[k])
		}
	}
	return 0, Code(C.call_restore(f, C.int(r.PID), list, C.uint(len(r.Pairs)))), nil
}
