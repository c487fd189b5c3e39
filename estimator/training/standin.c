// A stand-in for the CUDA driver and runtime, so that PyTorch's fake tensors can be
// on a GPU on a machine without one. It names one GPU of compute capability 8.0.
// Nothing is computed: a real allocation or kernel fails. Built by standin.py.
#include <string.h>

// The first fields of cudaDeviceProp, at their offsets in CUDA 13.
#define FIELD(at) (*(int *)((char *)p + (at)))

int cudaGetDeviceCount(int *n) { *n = 1; return 0; }
int cudaGetDevice(int *d) { *d = 0; return 0; }
int cudaSetDevice(int d) { return 0; }
int cudaDriverGetVersion(int *v) { *v = 13020; return 0; }
int cudaRuntimeGetVersion(int *v) { *v = 13020; return 0; }
int cudaGetLastError(void) { return 0; }
int cudaPeekAtLastError(void) { return 0; }
int cudaStreamIsCapturing(void *s, int *c) { *c = 0; return 0; }
int cudaStreamCreateWithPriority(void **s, unsigned f, int p) { *s = (void *)8; return 0; }
int cudaDeviceGetStreamPriorityRange(int *least, int *most) { *least = 0; *most = -3; return 0; }
int cudaDeviceGetAttribute(int *v, int a, int d) { *v = a == 75 ? 8 : 0; return 0; }
int cudaGetDeviceProperties(void *p, int d) {
	memset(p, 0, 1008);
	strcpy(p, "stand-in");
	*(unsigned long *)((char *)p + 288) = 80ul << 30; // memory
	*(unsigned long *)((char *)p + 296) = 48 << 10;	  // shared memory of a block
	FIELD(304) = 65536;				  // registers
	FIELD(308) = 32;				  // threads of a warp
	FIELD(320) = 1024;				  // threads of a block
	FIELD(360) = 8;					  // compute capability 8.0
	FIELD(384) = 108;				  // multiprocessors
	FIELD(604) = 2048;				  // threads of a multiprocessor
	return 0;
}

int cuDevicePrimaryCtxGetState(int d, unsigned *f, int *active) { *f = 0; *active = 1; return 0; }
#define NONE(name) int name(void) { return 999; }
NONE(cuCtxGetCurrent) NONE(cuCtxSetCurrent) NONE(cuDeviceGet) NONE(cuDeviceGetAttribute)
NONE(cuDevicePrimaryCtxRetain) NONE(cuFuncGetAttribute) NONE(cuFuncSetAttribute)
NONE(cuFuncSetCacheConfig) NONE(cuGetErrorString) NONE(cuLaunchCooperativeKernel)
NONE(cuLaunchKernel) NONE(cuLinkAddData_v2) NONE(cuLinkComplete) NONE(cuLinkCreate_v2)
NONE(cuModuleGetFunction) NONE(cuModuleLoad) NONE(cuModuleLoadData) NONE(cuModuleLoadDataEx)
NONE(cuModuleUnload) NONE(cuOccupancyMaxActiveBlocksPerMultiprocessor)
NONE(cuPointerGetAttribute) NONE(cuTensorMapEncodeTiled)
