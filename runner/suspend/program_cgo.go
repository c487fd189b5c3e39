//go:build cgo

package suspend

// The prototypes are from the CUDA driver API, "Initialization", "Primary Context
// Management", "Context Management" and "Memory Management".

/*
#include <dlfcn.h>
#include <stdlib.h>

static int gpu_init(void *f) { return ((int (*)(unsigned int))f)(0); }
static int gpu_device(void *f, int *device) { return ((int (*)(int *, int))f)(device, 0); }
static int gpu_retain(void *f, void **context, int device) { return ((int (*)(void **, int))f)(context, device); }
static int gpu_current(void *f, void *context) { return ((int (*)(void *))f)(context); }
static int gpu_alloc(void *f, unsigned long long *at, size_t bytes) { return ((int (*)(unsigned long long *, size_t))f)(at, bytes); }
static int gpu_write(void *f, unsigned long long at, const void *from, size_t bytes) { return ((int (*)(unsigned long long, const void *, size_t))f)(at, from, bytes); }
static int gpu_read(void *f, void *to, unsigned long long at, size_t bytes) { return ((int (*)(void *, unsigned long long, size_t))f)(to, at, bytes); }
*/
import "C"

import (
	"fmt"
	"runtime"
	"unsafe"
)

// gpuMemory is memory on the first GPU with a pattern in it, and a copy to compare with.
type gpuMemory struct {
	read     unsafe.Pointer
	at       C.ulonglong
	want     []uint32
	got      unsafe.Pointer // C memory, because the driver writes there
	gotWords []uint32
}

// fillGPU allocates memory on the first GPU and fills it. It locks the calling thread,
// which has the CUDA context.
func fillGPU(library string, bytes int) (*gpuMemory, error) {
	runtime.LockOSThread()
	name := C.CString(library)
	defer C.free(unsafe.Pointer(name))
	handle := C.dlopen(name, C.RTLD_NOW|C.RTLD_LOCAL)
	if handle == nil {
		return nil, fmt.Errorf("the NVIDIA driver's library cannot be loaded: %s", C.GoString(C.dlerror()))
	}
	var missing error
	find := func(symbol string) unsafe.Pointer {
		f := lookUp(handle, symbol)
		if f == nil {
			missing = fmt.Errorf("%s has no %s", library, symbol)
		}
		return f
	}
	start, device, retain, current := find("cuInit"), find("cuDeviceGet"), find("cuDevicePrimaryCtxRetain"), find("cuCtxSetCurrent")
	alloc, write := find("cuMemAlloc_v2"), find("cuMemcpyHtoD_v2")
	m := &gpuMemory{read: find("cuMemcpyDtoH_v2"), want: make([]uint32, bytes/4), got: C.malloc(C.size_t(bytes))}
	if missing != nil {
		return nil, missing
	}
	m.gotWords = unsafe.Slice((*uint32)(m.got), bytes/4)
	for i := range m.want {
		m.want[i] = pattern(i)
	}
	copy(m.gotWords, m.want)
	var gpu C.int
	var context unsafe.Pointer
	for _, step := range []struct {
		name string
		call func() C.int
	}{
		{"cuInit", func() C.int { return C.gpu_init(start) }},
		{"cuDeviceGet", func() C.int { return C.gpu_device(device, &gpu) }},
		{"cuDevicePrimaryCtxRetain", func() C.int { return C.gpu_retain(retain, &context, gpu) }},
		{"cuCtxSetCurrent", func() C.int { return C.gpu_current(current, context) }},
		{"cuMemAlloc", func() C.int { return C.gpu_alloc(alloc, &m.at, C.size_t(bytes)) }},
		{"cuMemcpyHtoD", func() C.int { return C.gpu_write(write, m.at, m.got, C.size_t(bytes)) }},
	} {
		if code := Code(step.call()); code != 0 {
			return nil, fmt.Errorf("%s: %v", step.name, code)
		}
	}
	return m, nil
}

// check reads the memory back and compares all of it.
func (m *gpuMemory) check() error {
	clear(m.gotWords)
	if code := Code(C.gpu_read(m.read, m.got, m.at, C.size_t(4*len(m.want)))); code != 0 {
		return fmt.Errorf("cuMemcpyDtoH: %v", code)
	}
	for i, want := range m.want {
		if got := m.gotWords[i]; got != want {
			return fmt.Errorf("word %d of its GPU memory was %#x and is %#x", i, want, got)
		}
	}
	return nil
}
