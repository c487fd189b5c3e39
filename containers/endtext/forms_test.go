package endtext

import (
	"strings"
	"testing"
)

// TestForms checks each form of text that a rule matches, and similar text with another
// meaning. Lines are separated by "\n". "" means that no claim counts.
func TestForms(t *testing.T) {
	const head = "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n"
	for _, row := range []struct {
		text string
		want Says
	}{
		// The machine.
		{"nvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown.", Infrastructure},
		{"nvidia-container-cli: 1.16.2, driver and library versions match", ""},
		{"Error: setting up CDI devices: unresolvable CDI devices nvidia.com/gpu=all", Infrastructure},
		{"INFO[0000] Found 2 CDI devices", ""},
		{"RuntimeError: Native API failed. Native API returns: 20 (UR_RESULT_ERROR_DEVICE_LOST)", Infrastructure},
		{"RuntimeError: Native API failed. Native API returns: -33 (UR_RESULT_ERROR_INVALID_DEVICE)", ""},
		{"[LightGBM] [Fatal] [CUDA] unknown error /srv/src/io/cuda/cuda_column_data.cpp 18", Infrastructure},
		{"[LightGBM] [Fatal] [CUDA] invalid device ordinal /srv/src/io/cuda/cuda_column_data.cpp 18", ""},
		{"RuntimeError: cuda runtime error (30) : unknown error at /pytorch/aten/src/THC/THCGeneral.cpp:50", Infrastructure},
		{"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.", Infrastructure},
		{"x.py:107: UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 805: MPS client failed to connect to the MPS control daemon or the MPS server", MPSFault},
		{"x.py:107: UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 804: forward compatibility was attempted on non supported HW", Infrastructure},
		{"x.py:107: UserWarning: if you see Error 804: forward compatibility was attempted on non supported HW, update the driver", ""},
		{"x.py:107: UserWarning: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Error 804: forward compatibility was attempted on non supported HW\n" + head + "ValueError: bad label 7", ""},

		// Memory of a GPU.
		{"Faiss assertion 'cudaMalloc(p, size) == cudaSuccess' failed; details: Failed to cudaMalloc 16000000000 bytes", GPUOOM},
		{"Failed to cudaMalloc 16 bytes on device 0 (error 700 an illegal memory access was encountered)", Program},
		{"ERROR: LoadError: CUFFTError(code 2, cuFFT failed to allocate GPU or CPU memory)", GPUOOM},
		{"ERROR: LoadError: CUFFTError(code 5, cuFFT failed to execute a transform)", ""},
		{"Caused by: com.nvidia.spark.rapids.jni.GpuSplitAndRetryOOM: GPU OutOfMemory: could not split inputs and retry", GPUOOM},
		{"23/04/06 15:58:50 WARN TaskSetManager: Lost task 82.0: com.nvidia.spark.rapids.jni.RetryOOM: task should retry operation", ""},
		{"terminate called after throwing an instance of 'thrust::system::detail::bad_alloc'\n  what():  std::bad_alloc: out of memory", GPUOOM},
		{"terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc", HostOOM},
		{"ERROR Memory_Allocation_Failure(EL0004): Failed to allocate memory requested by GE module.", GPUOOM},
		{"ERROR Invalid_Argument(EL0003): The argument is invalid.", ""},
		{"cuda_alloc: allocating 144.00 MiB on device 4: cudaMalloc failed: out of memory\n" + head + "ValueError: Failed to create llama_context", GPUOOM},
		{"cuda_alloc: allocating 144.00 MiB on device 4: cudaMalloc failed: out of memory\n" + head + "ValueError: Failed to load model: no such file: m.gguf", ""},
		{"cuda_alloc: allocating 144.00 MiB on device 4: cudaMalloc failed: out of memory\n" + head + "ValueError: chat template has no role tool", ""},
		{"cuda_alloc: allocating 144.00 MiB on device 4: cudaMalloc failed: out of memory\nfailed to load model\n" + head + "AssertionError", GPUOOM},
		{"cuda_alloc: allocating 144.00 MiB on device 4: cudaMalloc failed: out of memory\nplan b\n2\n3\n4\n5\n6\n" + head + "AssertionError", ""},
		{"cuda_alloc: allocating 144.00 MiB on device 4: cudaMalloc failed: out of memory\nplan b\n" + head + "AssertionError: 3 labels, want 4", ""},
		{"loading failed: unexpected error when creating the state: [LLM][ERROR] CUDA runtime error in ::cudaMallocAsync(ptr, n): out of memory", GPUOOM},
		{"the retry policy applies when creating the state fails with CUDA runtime error in ::cudaMallocAsync(ptr, n): out of memory", ""},
		{"allocation of the next batch failed: GPU out of memory, will retry with half of it", ""},
		{"allocation of the next batch failed: GPU out of memory, could not retry", GPUOOM},

		{"MIOpen Error: /src/hip/handlehip.cpp:70: Memory not available to allocate buffer: 655360000", GPUOOM},
		{"MIOpen Error: /src/ocl/convolutionocl.cpp:739: Buffers cannot be NULL", ""},

		// Memory of the host.
		{"Caused by: com.nvidia.spark.rapids.jni.CpuSplitAndRetryOOM: CPU OutOfMemory: could not split inputs and retry", HostOOM},
		{"(raylet) node_manager.cc:3064: 12 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node", HostOOM},
		{"(raylet) node_manager.cc:3064: 0 Workers (tasks / actors) killed due to memory pressure (OOM), 3 Workers crashed due to other reasons at node", ""},
		{head + "    return tensor.pin_memory()\nRuntimeError: CUDA error: out of memory", HostOOM},
		{head + "    return tensor.cuda()\nRuntimeError: CUDA error: out of memory", GPUOOM},
		{head + "  File \"/lib/torch/utils/data/_utils/pin_memory.py\", line 60, in pin_memory\n    return data.pin_memory(device)\nRuntimeError: CUDA error: out of memory", GPUOOM},
		{"NCCL WARN Error while creating shared memory segment /dev/shm/nccl-x2Yw (size 9637888)", HostOOM},
		{"NCCL WARN Call to posix_fallocate failed : No space left on device", HostOOM},
		{"NCCL WARN Error while attaching to shared memory segment /dev/shm/nccl-x2Yw (size 9637888): No such file or directory", ""},
		{"srun: error: gpu001: task 0: Out Of Memory", HostOOM},
		{"srun: error: gpu001: task 0: Exited with exit code 1", ""},
		{"    Reason:       OOMKilled", HostOOM},
		{`            "OOMKilled": false,`, ""},
		{"ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size 34359738400", HostOOM},
		{"ggml_backend_cpu_buffer_type_alloc_buffer: allocated a buffer of size 34359738400", ""},
		{"alloc_tensor_range: failed to allocate CPU buffer of size 34359738400", HostOOM},
		{"ggml_aligned_malloc: insufficient memory (attempted to allocate 32768.03 MB)", HostOOM},
		{head + "RuntimeError: unable to mmap 4970000000 bytes from file </m/model.safetensors>: Cannot allocate memory (12)", HostOOM},

		// Exhausted memory is only mentioned.
		{"A shortage raises a catchable\n``RuntimeError: CUDA out of memory`` with a Python traceback", ""},
		{"+    ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.", ""},
		{"Symptom: PyTorch's raw torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", ""},
		{"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate <N> MiB", ""},
		{"+ python train.py  # RuntimeError: CUDA out of memory. Tried to allocate 2 GiB", ""},
		{"Worker exit detail: End of file. There are some potential root causes. (1) The process is killed by SIGKILL by OOM killer due to high memory usage. (2) ray stop --force is called.", ""},
		{"ERROR: The NVIDIA Driver was not detected.  GPU functionality will not be available.", ""},
	} {
		got, rule := Says(""), ""
		if c := Read(strings.Split(row.text, "\n"), Options{}).Cause; c != nil {
			got, rule = c.Says, c.Rule
		}
		if got != row.want {
			t.Errorf("%q by %q, want %q:\n%s", got, rule, row.want, row.text)
		}
	}
}
