package endtext

import (
	"regexp"
	"strings"

	"carma/internal/lazyregexp"
)

// Rule is a row of the table with which lines of output are classified. The texts come
// from the frameworks' sources and from reports about them.
type Rule struct {
	Name      string
	Framework string // framework that prints the text
	Says      Says
	Strength  Strength // strength in a line that is not a quotation
	Message   string
	match     func() *regexp.Regexp
	not       func() *regexp.Regexp // excludes some lines that match
	// raised limits the rule to the exception of a traceback, because its text is common
	// elsewhere.
	raised bool
	// anyLevel is set if the rule also counts in lines of level warning.
	anyLevel bool
	// Yes is a line that the rule matches. No is a similar line that must not claim this
	// failure.
	Yes, No string
}

const (
	gpuMessage  = "out of GPU memory"
	hostMessage = "out of host memory"
)

// Rules returns the table, in the order in which rules are tried on each line. The first
// match counts.
func Rules() []Rule { return rules }

var rules = []Rule{
	{Name: "mps-evicted", Framework: "CUDA MPS", Says: Evicted, Strength: Strong, Message: "MPS ended the client to take its memory back",
		match: lazyregexp.New(`cudaErrorMpsClientTerminated|CUDA_ERROR_MPS_CLIENT_TERMINATED|MPS client (has been |was )?terminated|` +
			`(?i:\b(cuda|mps)[ _a-z]*(error|code|failure)[ :=(#]*(code )?810\b)`),
		Yes: "RuntimeError: CUDA error: the MPS client has been terminated by the server", No: "connected to MPS server, device memory limit 810 MiB"},
	{Name: "mps-fault", Framework: "CUDA MPS", Says: MPSFault, Strength: Strong, Message: "the MPS server failed", match: mpsFault,
		Yes: "main.cu:44 CUDA error: code 806", No: "HTTP error code 8060"},
	{Name: "mps-full", Framework: "CUDA MPS", Says: Infrastructure, Strength: Strong, Message: "the MPS server has no room for another client",
		match: lazyregexp.New(`cudaErrorMpsMax(Clients|Connections)Reached|CUDA_ERROR_MPS_MAX_(CLIENTS|CONNECTIONS)_REACHED|` +
			`hardware resources required to (create MPS client|support device connections)|` +
			`(?i:\b(cuda|mps)[ _a-z]*(error|code|failure)[ :=(#]*(code )?80[89]\b)`),
		Yes: "cuCtxCreate: CUDA_ERROR_MPS_MAX_CLIENTS_REACHED", No: "MPS: at most 48 clients per GPU"},
	{Name: "nccl-duplicate-gpu", Framework: "NCCL", Says: Program, Strength: Strong,
		Message: "NCCL found one GPU in use by two ranks of the task: the program picked its device wrongly, or carma placed it wrongly",
		match:   lazyregexp.New(`Duplicate GPU detected`),
		Yes:     "ncclInvalidUsage: Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1b000", No: "duplicate rows detected"},
	{Name: "nvml-lost", Framework: "NVML", Says: Infrastructure, Strength: Strong, Message: "the container lost its GPU devices",
		match: lazyregexp.New(`Failed to initialize NVML: (Unknown Error|Driver/library version mismatch)|NVMLError_LibRmVersionMismatch|(?i:driver/library version mismatch)|NVML/RM version mismatch|NVRM: API mismatch|[Cc]ouldn't communicate with the NVIDIA driver`),
		Yes:   "Failed to initialize NVML: Unknown Error", No: "Failed to initialize NVML: ERROR_LIBRARY_NOT_FOUND"},
	{Name: "container-toolkit", Framework: "NVIDIA Container Toolkit, CDI", Says: Infrastructure, Strength: Strong, Message: "the container engine could not pass the GPU",
		match: lazyregexp.New(`unresolvable CDI devices|failed to (inject CDI devices|stat CDI host device)|nvidia-container-cli: (initialization|detection|device) error`),
		Yes:   "error modifying OCI spec: failed to inject CDI devices: unresolvable CDI devices runtime.nvidia.com/gpu=all", No: "Found 2 CDI devices"},
	{Name: "gpu-hardware", Framework: "CUDA, NVML", Says: Infrastructure, Strength: Strong, Message: "the GPU failed",
		match: lazyregexp.New(`(?i:uncorrectable (NVLink|ECC) error|GPU is lost|GPUIsLost|GPU has fallen off the bus|device lost or GPU requires reset|GPU requires reset|double bit ECC|HW Exception by GPU node.*GPU Hang|\b(un)?contained (memory|ECC) error|Parent device is lost)|` +
			`cudaErrorECCUncorrectable|CUDA_ERROR_ECC_UNCORRECTABLE|CUDA_ERROR_NVLINK_UNCORRECTABLE|cudaErrorNvlinkUncorrectable|cudaErrorDevicesUnavailable|CUDA-capable device(\(s\) is/are|s are) busy or unavailable|hipErrorECCNotCorrectable|ERROR_DEVICE_LOST\b|vk::DeviceLostError|\bErrorDeviceLost\b|cudaErrorContained\b|CUDA_ERROR_CONTAINED\b|Invalid access of peer GPU memory over nvlink or a hardware error|` +
			`Unable to determine the device handle for (gpu|GPU)|NVMLError_Unknown\b|NVMLError_ResetRequired|CUDA_ERROR_SYSTEM_NOT_READY|cudaErrorSystemNotReady|system not yet initialized`),
		not: lazyregexp.New(`(?i)requires reset *: *(no|false|0)\b`),
		Yes: "RuntimeError: CUDA error: device lost or GPU requires reset", No: "the GPU reset counter is 0"},
	{Name: "cuda-unknown", Framework: "CUDA", Says: Infrastructure, Strength: Strong, Message: "CUDA does not work on the GPU (unknown error)",
		match: lazyregexp.New(`\bCUDA\]?:? (driver |runtime )?(error:? )?unknown error|(?i:cuda runtime error \(\d+\) ?: unknown error)|(?i:cuda failure (999 )?'unknown error')|CUDA_ERROR_UNKNOWN|cudaErrorUnknown\b|hipErrorUnknown\b|cuda[A-Za-z]* (error|failure)[ :]*\(?999\b|Gpu API call\) unknown error`),
		Yes:   "torch.AcceleratorError: CUDA error: unknown error", No: "RuntimeError: unknown error in config section cuda"},
	{Name: "cuda-compatibility", Framework: "CUDA", Says: Infrastructure, Strength: Strong, Message: "the driver is too old or another one than the image's CUDA wants",
		match: lazyregexp.New(`CUDA_ERROR_(SYSTEM_DRIVER_MISMATCH|COMPAT_NOT_SUPPORTED_ON_DEVICE)|cudaErrorSystemDriverMismatch|cudaErrorCompatNotSupportedOnDevice|system has unsupported display driver / cuda driver combination|forward compatibility was attempted on non supported HW|CUDA driver version is insufficient for CUDA runtime version|cudaErrorInsufficientDriver|NVIDIA driver on your system is too old`),
		Yes:   "Error 803: system has unsupported display driver / cuda driver combination", No: "forward compatibility of checkpoints is checked"},
	{Name: "no-device", Framework: "CUDA, PyTorch, TensorFlow, JAX, HIP, OpenCL", Says: DeviceMissing, Strength: Strong, Message: "the program saw no GPU",
		match: lazyregexp.New(`No CUDA GPUs are available|no CUDA-capable device is detected|CUDA_ERROR_NO_DEVICE|cudaErrorNoDevice|hipErrorNoDevice|No HIP GPUs are available|(?i:no (nvidia |cuda |gpu |supported |suitable )*(gpus?|devices?) (was |were |is |are )?(found|detected|available|visible)\b)|` +
			`CL_DEVICE_NOT_FOUND|Torch not compiled with CUDA enabled|Found no NVIDIA driver|CUDA is not available|cuda is not available|Unable to initialize backend '(cuda|gpu)'|CUDA_VISIBLE_DEVICES.*no devices|device >= 0 && device < num_gpus`),
		not: lazyregexp.New(`(?i)falling back to cpu|using cpu|running on cpu`),
		Yes: "RuntimeError: No CUDA GPUs are available", No: "no GPU found, using CPU"},

	{Name: "hami-limit", Framework: "HAMi", Says: GPUOOM, Strength: Strong, Message: "over the GPU memory limit (HAMi)",
		match: lazyregexp.New(`\[HAMI-core.*Device \d+ OOM|^Device \d+ OOM \d`), anyLevel: true,
		Yes: "[HAMI-core ERROR (pid:41 thread=140213 allocator.c:54)]: Device 0 OOM 8623489024 / 8589934592", No: "[HAMI-core Msg(41:140213:libvgpu.c:855)]: Initialized"},
	{Name: "nccl-oom", Framework: "NCCL", Says: GPUOOM, Strength: Strong, Message: gpuMessage + " (NCCL)", anyLevel: true,
		match: lazyregexp.New(`(?i:cuda failure (\d+ )?'out of memory'|Failed to CUDA (m|c)alloc|Failed to cuMem\w* \d+ bytes|NCCL .*out of memory)`),
		Yes:   "Failed to CUDA calloc async 608 bytes", No: "NCCL WARN Cuda failure 700 'an illegal memory access was encountered'"},
	{Name: "rmm-oom", Framework: "RAPIDS", Says: GPUOOM, Strength: Strong, Message: gpuMessage + " (RMM)",
		match: lazyregexp.New(`bad_alloc: out_of_memory: (CUDA|RMM)|RMM failure|Maximum pool size exceeded|\b(Gpu)?(SplitAnd)?RetryOOM\b`),
		Yes:   "MemoryError: std::bad_alloc: out_of_memory: CUDA error at: /rmm/mr/device/cuda_memory_resource.hpp", No: "MemoryError: std::bad_alloc"},
	{Name: "cupy-oom", Framework: "CuPy", Says: GPUOOM, Strength: Strong, Message: gpuMessage + " (CuPy)",
		match: lazyregexp.New(`^cupy\S*\.OutOfMemoryError: |cupy_backends\S*: cudaErrorMemoryAllocation`),
		Yes:   "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8,589,934,592 bytes (allocated so far: 1,073,741,824 bytes).", No: "import cupy.cuda.memory"},
	{Name: "paddle-oom", Framework: "PaddlePaddle", Says: GPUOOM, Strength: Strong, Message: gpuMessage + " (PaddlePaddle)",
		match: lazyregexp.New(`Out of memory error on GPU \d+\. Cannot allocate`),
		Yes:   "Out of memory error on GPU 0. Cannot allocate 2.246094GB memory on GPU 0, 22.843750GB memory has been allocated and available memory is only 1.150024GB.", No: "Please check whether there is any other process using GPU 0."},
	{Name: "pytorch-oom", Framework: "PyTorch", Says: GPUOOM, Strength: Strong, Message: gpuMessage + " (PyTorch)",
		match: lazyregexp.New(`(CUDA|HIP|XPU|NPU) out of memory\. ?Tried to allocate|MPS backend out of memory|\btorch\.(cuda\.)?OutOfMemoryError: |NPU out of memory`),
		Yes:   "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 39.39 GiB", No: "from torch.cuda import OutOfMemoryError"},
	{Name: "pytorch-oom", Framework: "PyTorch", Says: GPUOOM, Strength: Strong, Message: gpuMessage + " (PyTorch)", raised: true,
		match: lazyregexp.New(`^(\w+\.)*(OutOfMemoryError|RuntimeError|RayTaskError\(\w+\)): CUDA out of memory`),
		Yes:   "RuntimeError: CUDA out of memory.", No: "RuntimeError: OOM guard disabled"},
	{Name: "pytorch-nvml-assert", Framework: "PyTorch", Says: GPUOOM, Strength: Words, Message: gpuMessage + " (PyTorch's allocator failed)",
		match: lazyregexp.New(`NVML_SUCCESS == r\b.*INTERNAL ASSERT FAILED`),
		Yes:   `RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at "../c10/cuda/CUDACachingAllocator.cpp":1154`, No: `RuntimeError: t == DeviceType::CUDA INTERNAL ASSERT FAILED at "../c10/cuda/impl/CUDAGuardImpl.h":24`},
	{Name: "pinned-host-memory", Framework: "CUDA, HIP", Says: HostOOM, Strength: Strong, Message: hostMessage + " (pinned memory)",
		match: lazyregexp.New(`\b(` + pinning + `)\b.*(?i:` + noMemory + `)|(?i:` + noMemory + `).*\b(` + pinning + `)\b|failed to alloc \d+ bytes on host|\bfor host memory\b`),
		Yes:   `CUDA error at src/stage.cu:41 code=2(cudaErrorMemoryAllocation) "cudaHostAlloc(&h, bytes, cudaHostAllocDefault)"`, No: "cudaHostAlloc: 2048 MiB of pinned memory in 0.3 s"},
	{Name: "cuda-oom", Framework: "CUDA runtime", Says: GPUOOM, Strength: Strong, Message: gpuMessage + " (CUDA)",
		match: lazyregexp.New(`(?i:cuda (runtime |driver )?(error|failure)[ :]*(\(?2\)?[ :,]*)?\(?"?out of memory)|` +
			`cudaErrorMemoryAllocation|cudaMalloc\w*( failed)?: out of memory|Status: out of memory|` +
			`Out of GPU memory trying to allocate|(?i:failed to (cuda|hip)Malloc(Async|Managed|Pitch|3D|Array)?\b)|\bthrust::(\w+::)*bad_alloc\b`),
		not: lazyregexp.New(`illegal memory access|invalid argument|device-side assert|no kernel image|launch failure`),
		Yes: "CUDA error: out of memory (2) at solver.cu:118: cudaMalloc(&u, n * sizeof(double))", No: "CUDA error: invalid argument"},
	{Name: "cuda-driver-oom", Framework: "CUDA driver", Says: GPUOOM, Strength: Strong, Message: gpuMessage + " (CUDA driver)",
		match: lazyregexp.New(`CUDA_ERROR_OUT_OF_MEMORY|(?i:cuMem\w*alloc\w*.*out of memory)`),
		Yes:   "cuMemCreate(&handle, n, &prop, 0) failed with error CUDA_ERROR_OUT_OF_MEMORY", No: "CUDA_ERROR_INVALID_VALUE"},
	{Name: "tensorflow-host", Framework: "TensorFlow", Says: HostOOM, Strength: Strong, Message: hostMessage + " (TensorFlow on CPU)",
		match: lazyregexp.New(`(OOM when allocating tensor|RESOURCE_EXHAUSTED: .*alloc).*(device:CPU|by allocator (mkl)?cpu|\bon CPU\b)`),
		Yes:   "OOM when allocating tensor with shape[8] and type float on /job:localhost/replica:0/task:0/device:CPU:0 by allocator cpu", No: "OOM when allocating tensor with shape[8] and type float on /device:GPU:0 by allocator GPU_0_bfc"},
	{Name: "paddle-host", Framework: "PaddlePaddle", Says: HostOOM, Strength: Strong, Message: hostMessage + " (PaddlePaddle on CPU)",
		match: lazyregexp.New(`Fail to alloc memory of \d+ size\b`),
		Yes:   "ResourceExhaustedError: Fail to alloc memory of 107374182400 size, error code is 12.", No: "Fail to alloc a port, error code is 12."},
	{Name: "tensorflow-oom", Framework: "TensorFlow", Says: GPUOOM, Strength: Strong, Message: gpuMessage + " (TensorFlow)",
		match: lazyregexp.New(`ResourceExhaustedError|OOM when allocating tensor|Dst tensor is not initialized`),
		not:   lazyregexp.New(`No space left|Too many open|disk quota`),
		Yes:   "tensorflow.python.framework.errors_impl.ResourceExhaustedError: Graph execution error:", No: "ResourceExhaustedError: log/events: No space left on device"},
	{Name: "jax-oom", Framework: "JAX, XLA", Says: GPUOOM, Strength: Strong, Message: gpuMessage + " (XLA)",
		match: lazyregexp.New(`(RESOURCE_EXHAUSTED|Resource exhausted):? .*(?i:out of memory|allocat)`),
		not:   lazyregexp.New(`not a failure|StatusCode\.|larger than max`),
		Yes:   "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8589934592 bytes.", No: "status = StatusCode.RESOURCE_EXHAUSTED"},
	{Name: "cuda-library-oom", Framework: "cuBLAS, cuDNN, cuSOLVER, cuSPARSE, cuFFT", Says: GPUOOM, Strength: Strong, Message: gpuMessage + " (CUDA library)",
		match: lazyregexp.New(`CU(BLAS|DNN|SOLVER|SPARSE|RAND|TENSOR)_STATUS_ALLOC(ATION)?_FAILED|CUFFT_ALLOC_FAILED|(HIP|ROC)\w+_STATUS_ALLOC_FAILED|MIOPEN_STATUS_ALLOC_FAILED|\(External\) (CUBLAS error\(3\)|(CUDNN|CUSOLVER) error\(2\))|(?i:\bcu(BLAS|DNN|SOLVER|SPARSE|FFT)(LT)?\b.{0,40}\bthe resource allocation failed)|cusolver error: \d*,? ?when calling .*Create|cuFFT failed to allocate GPU or CPU memory`),
		Yes:   "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", No: "RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED"},
	{Name: "vllm-cache", Framework: "vLLM", Says: GPUOOM, Strength: Strong, Message: gpuMessage + " (no room for the KV cache)",
		match: lazyregexp.New(`No available memory for the cache blocks|larger than the (available|maximum).*KV cache|KV cache.*(larger|more) than.*available|less than desired GPU memory utilization|maximum number of tokens that can be stored in KV cache|not enough (GPU )?memory (for|to).*(KV cache|cache blocks)|Error in memory profiling`),
		Yes:   "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.", No: "INFO KV cache size: 120,000 tokens"},
	{Name: "server-memory", Framework: "SGLang, Text Generation Inference", Says: GPUOOM, Strength: Strong, Message: gpuMessage + " (inference server)",
		match: lazyregexp.New("\\b(Prefill|Decode) out of memory\\. Try to lower your batch size|Not enough memory\\. Please try to (increase|decrease) --mem-fraction-static|Not enough memory to handle \\d+ (prefill )?tokens|decrease `?--(max-batch-prefill-tokens|max-total-tokens|mem-fraction-static)"),
		Yes:   "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.", No: "server_args: mem_fraction_static=0.88"},
	{Name: "tensorrt-oom", Framework: "TensorRT", Says: GPUOOM, Strength: Strong, Message: gpuMessage + " (TensorRT)",
		match: lazyregexp.New(`Error Code 2: OutOfMemory\b|\[(virtualMemoryBuffer|defaultAllocator)\.cpp.*(?i:out ?of ?memory)`),
		Yes:   "[E] Error[2]: [virtualMemoryBuffer.cpp::resizePhysical::154] Error Code 2: OutOfMemory (Requested size was 5368709120 bytes.)", No: "[E] Error[2]: [graph.cpp::symbolicExecute::581] Error Code 2: Internal Error"},
	{Name: "no-batch-fits", Framework: "Accelerate", Says: GPUOOM, Strength: Words, Message: "out of memory at every batch size",
		match: lazyregexp.New(`No executable batch size found, reached zero`),
		Yes:   "RuntimeError: No executable batch size found, reached zero.", No: "Decreasing batch size to: 32"},
	{Name: "off-the-gpu", Framework: "Transformers", Says: GPUOOM, Strength: Strong, Message: gpuMessage + " (parts of the model would have to leave the GPU)",
		match: lazyregexp.New(`Some modules are dispatched on the CPU or the disk\. Make sure you have enough GPU RAM`),
		Yes:   "ValueError: Some modules are dispatched on the CPU or the disk. Make sure you have enough GPU RAM to fit the quantized model.", No: "Some parameters are on the meta device because they were offloaded to the cpu."},
	{Name: "tinygrad-oom", Framework: "tinygrad", Says: GPUOOM, Strength: Strong, Message: gpuMessage + " (tinygrad)",
		match: lazyregexp.New(`Allocation of [\d.]+ ?\w+ failed on (NV|CUDA|AMD|HIP|GPU|CL|METAL)\b`),
		Yes:   "MemoryError: Allocation of 17.18 GB failed on NV. Used: 7.41 GB", No: "MemoryError: Allocation of 17.18 GB failed on CPU. Used: 7.41 GB"},
	{Name: "exllama-oom", Framework: "ExLlama", Says: GPUOOM, Strength: Strong, Message: gpuMessage + " (ExLlama)",
		match: lazyregexp.New(`Insufficient (space on devices?\b|VRAM)`),
		Yes:   "RuntimeError: Insufficient space on devices, remaining size: 312 MB", No: "RuntimeError: Insufficient space on disk"},
	{Name: "bitsandbytes-oom", Framework: "bitsandbytes", Says: GPUOOM, Strength: Strong, Message: gpuMessage + " (bitsandbytes)",
		match: lazyregexp.New(`^Error out of memory at line \d+ in file`),
		Yes:   "Error out of memory at line 380 in file /build/bitsandbytes/csrc/pythonInterface.c", No: "Error invalid argument at line 380 in file /build/bitsandbytes/csrc/ops.cu"},
	{Name: "mindspore-oom", Framework: "MindSpore", Says: GPUOOM, Strength: Strong, Message: gpuMessage + " (MindSpore)",
		match: lazyregexp.New(`^RuntimeError: Allocate memory failed|Memory not enough[,:]|Malloc for kernel \w+ failed|Out of Memory.*[Ff]ree memory size|plus alloc size : \d+ is more than total`),
		Yes:   "RuntimeError: Allocate memory failed.", No: "Memory Pool Stats:"},
	{Name: "ascend-oom", Framework: "Ascend CANN", Says: GPUOOM, Strength: Strong, Message: gpuMessage + " (CANN)",
		match: lazyregexp.New(`\(EL0004\)|\bEL0004: |\brtMalloc (execute )?fail`),
		Yes:   "Memory_Allocation_Failure(EL0004): Failed to allocate memory requested by GE module.", No: "Call aclrtMallocHost fail, size:3221291008"},
	{Name: "relion-oom", Framework: "RELION", Says: GPUOOM, Strength: Strong, Message: gpuMessage + " (RELION)",
		match: lazyregexp.New(`You ran out of memory on the GPU|CudaCustomAllocator out of memory`),
		Yes:   "You ran out of memory on the GPU(s).", No: "Each MPI-rank running on a GPU increases the use of GPU-memory."},
	{Name: "cuda-library-suspect", Framework: "cuBLAS, cuDNN, cuSOLVER", Says: GPUOOM, Strength: Hint, Message: gpuMessage + " (a CUDA library could not start on a full card)",
		match: lazyregexp.New(`CUBLAS_STATUS_NOT_INITIALIZED|(?i:\bcuBLAS(LT)? error: the library was not initialized)|CUDNN_STATUS_(NOT_SUPPORTED|NOT_INITIALIZED|INTERNAL_ERROR)|(?i:unable to find (a valid|an) (cuDNN algorithm|engine)|FIND was unable to find an engine|gpusolver\w*Create\(&handle\) failed|cusolver internal error|CUSOLVER_STATUS_(NOT_INITIALIZED|INTERNAL_ERROR)|Failed to (get|create|initialize|allocate) \w*(cudnn|cublas|cusolver)\w*|DNN library (initialization failed|is not found)|could not create cud?nn handle|insufficient resources when calling .cusparse)|CUSPARSE_STATUS_INSUFFICIENT_RESOURCES|HSA_STATUS_ERROR_OUT_OF_RESOURCES`),
		Yes:   "RuntimeError: Unable to find a valid cuDNN algorithm to run convolution", No: "cuDNN version 8902"},

	{Name: "device-assert", Framework: "CUDA", Says: Program, Strength: Strong, Message: "a check in GPU code failed (device-side assert)",
		match: lazyregexp.New(`device-side assert triggered|cudaErrorAssert\b`),
		Yes:   "RuntimeError: CUDA error: device-side assert triggered", No: "Compile with TORCH_USE_CUDA_DSA to enable device-side assertions."},
	{Name: "illegal-access", Framework: "CUDA", Says: Program, Strength: Strong, Message: "GPU code used memory that is not its own (illegal memory access)",
		match: lazyregexp.New(`illegal memory access|cudaErrorIllegalAddress|CUDA_ERROR_ILLEGAL_ADDRESS`),
		Yes:   "RuntimeError: CUDA error: an illegal memory access was encountered", No: "memory access pattern: coalesced"},
	{Name: "launch-timeout", Framework: "CUDA", Says: Program, Strength: Strong, Message: "a kernel ran longer than the driver allows",
		match: lazyregexp.New(`the launch timed out and was terminated|cudaErrorLaunchTimeout|CUDA_ERROR_LAUNCH_TIMEOUT`),
		Yes:   "torch.AcceleratorError: CUDA error: the launch timed out and was terminated", No: "the job timed out"},

	{Name: "worker-shm", Framework: "PyTorch", Says: HostOOM, Strength: Strong, Message: "a data loader ran out of shared memory",
		match: lazyregexp.New(`DataLoader worker .* killed by signal: Bus error|(unable to (open|mmap|allocate|write to file).*(shared memory|/torch_|/dev/shm))|No space left on device.*/dev/shm|/dev/shm.*No space left|Error while creating shared memory segment|posix_fallocate failed ?: No space left`),
		not:   lazyregexp.New(`Too many open files|Permission denied`),
		Yes:   "RuntimeError: DataLoader worker (pid 88) is killed by signal: Bus error.", No: "RuntimeError: DataLoader worker (pid 88) exited unexpectedly"},
	{Name: "worker-killed", Framework: "PyTorch", Says: HostOOM, Strength: Strong, Message: "a data loader was killed, most likely for host memory",
		match: lazyregexp.New(`DataLoader worker .* killed by signal: Killed`),
		Yes:   "RuntimeError: DataLoader worker (pid 88) is killed by signal: Killed.", No: "DataLoader worker (pid 88) is killed by signal: Terminated."},
	{Name: "bus-error", Framework: "Linux", Says: HostOOM, Strength: Strong, Message: "bus error, most likely too little shared memory",
		match: lazyregexp.New(`^(\S+: line \d+: +\d+ )?Bus error\b( +\(core dumped\))?|^Fatal Python error: Bus error`),
		Yes:   "Bus error (core dumped)", No: "PCI bus error count: 0"},
	{Name: "host-oom", Framework: "PyTorch, Linux", Says: HostOOM, Strength: Strong, Message: hostMessage,
		match: lazyregexp.New(`DefaultCPUAllocator: (can't allocate|not enough) memory|Out of memory: Killed process|oom-kill|(?i:ran out of (host|system|CPU) memory|out of (host|system) memory|(VK_ERROR|UR_RESULT_ERROR|PI_ERROR|ZE_RESULT_ERROR)_OUT_OF_HOST_MEMORY|Cannot allocate memory(?: \(12\))?$|\bENOMEM\b|CL_OUT_OF_HOST_MEMORY)|(?i:requires more system memory|failed to allocate CPU memory|oom_kill event|\bOOM[- ]?Killed\b|^srun: error: .*\bOut Of Memory\b|cpu_buffer_type_alloc_buffer: failed|failed to allocate (?:CPU|\w+_Host)\w* buffer|aligned_malloc: insufficient memory)|node running low on memory|\b[1-9]\d* Workers \(tasks / actors\) killed due to memory pressure|\bCpu(SplitAnd)?RetryOOM\b|[Kk]illed by YARN for exceeding (physical |virtual )?memory limits|OutOfMemoryError: Task was killed due to the node`),
		not:   lazyregexp.New(`(?i)OOM[- ]?Killed"?\s*[:=]\s*(false|no|0)\b`),
		Yes:   "RuntimeError: [enforce fail at alloc_cpu.cpp:80] . DefaultCPUAllocator: can't allocate memory", No: "checking for oom kills: none"},
	{Name: "host-oom", Framework: "Python, C++", Says: HostOOM, Strength: Strong, Message: hostMessage, raised: true,
		match: lazyregexp.New(`^(\w+\.)*_?(Array)?MemoryError\b|^OSError: \[Errno 12\]|std::bad_alloc`),
		not:   lazyregexp.New(`^(pyopencl|pycuda|cupy\w*|numba\.cuda|rmm)\.|MEM_OBJECT_ALLOCATION|\bcuMem\w*Alloc|CUDA_ERROR_`),
		Yes:   "MemoryError: Unable to allocate 7.45 GiB for an array with shape (1000000000,)", No: "MemoryErrorCount = 0"},
	{Name: "host-runtime", Framework: "Rust, Go, Julia, R, Fortran, Perl, Arrow, DuckDB, Ray, C", Says: HostOOM, Strength: Strong, Message: hostMessage,
		match: lazyregexp.New(`^memory allocation of \d+ bytes failed|^fatal error: runtime: (out of memory|cannot allocate memory)|^runtime: out of memory: cannot allocate|^ERROR: (LoadError: )*OutOfMemoryError\(\)|\bArrowMemoryError: |\bFailed to (malloc|calloc|realloc) \d+|\bout of memory allocating \d+ bytes after a total of|\(os error 12\)|code: 12, kind: OutOfMemory|duckdb\.OutOfMemoryException|^Out of Memory Error: (failed|could not) |\bcannot allocate vector of size\b|^Out of memory in perl\b|\binsufficient virtual memory\b|\bvirtual memory exhausted\b|: memory exhausted$|^Error allocating \d+ bytes$|out of memory or dimension too large for Octave|\bObjectStoreFullError: `),
		Yes:   "memory allocation of 137438953472 bytes failed", No: "memory allocation of the scheduler took 3 ms"},
	{Name: "dask-budget", Framework: "Dask", Says: HostOOM, Strength: Strong, Message: hostMessage + " (Dask)", anyLevel: true,
		match: lazyregexp.New(`exceeded \d+% memory budget\. Restarting`),
		Yes:   "distributed.nanny.memory - WARNING - Worker tcp://127.0.0.1:40001 (pid=812) exceeded 95% memory budget. Restarting...", No: "distributed.worker.memory - WARNING - Worker is at 80% memory usage. Pausing worker."},
	{Name: "java-host-memory", Framework: "Java", Says: HostOOM, Strength: Strong, Message: hostMessage + " (Java)",
		match: lazyregexp.New(`java\.lang\.OutOfMemoryError: (Physical memory|Cannot allocate|Direct buffer|unable to create)|Can't allocate \[HOST\] memory`),
		Yes:   "Caused by: java.lang.OutOfMemoryError: Physical memory usage is too high: physicalBytes = 64G > maxPhysicalBytes = 63G", No: "java.lang.OutOfMemoryError: Java heap space"},
	{Name: "bad-alloc", Framework: "C++", Says: HostOOM, Strength: Strong, Message: hostMessage,
		match: lazyregexp.New(`(what\(\): +|terminate called .*')std::bad_alloc\W*$`),
		Yes:   "terminate called after throwing an instance of 'std::bad_alloc'", No: "what():  std::bad_alloc: cudaErrorMemoryAllocation: out of memory"},

	// By words, see words.go.
	{Name: "gpu-memory", Framework: "other programs", Says: GPUOOM, Strength: Strong, Message: gpuMessage},
	{Name: "memory-words", Framework: "other programs", Says: GPUOOM, Strength: Words, Message: "out of memory"},
}

// pinning matches the functions of CUDA and HIP that allocate memory of the host.
const pinning = `cudaHostAlloc|cudaMallocHost|cuMemHostAlloc|cuMemAllocHost|cudaHostRegister|cuMemHostRegister|hipHostMalloc|hipHostAlloc|hipHostRegister`

// noMemory matches the words of CUDA and HIP for exhausted memory.
const noMemory = `out of memory|OUT_OF_MEMORY|MemoryAllocation|cannot allocate`

// MPSLost reports whether a line of output means that a program could not reach or lost
// its MPS server (CUDA errors 805 to 807).
func MPSLost(line []byte) bool { return mpsFault().Match(line) }

// mpsFault matches the lines of the rule for MPS.
var mpsFault = lazyregexp.New(`cudaErrorMps(ConnectionFailed|RpcFailure|ServerNotReady)|` +
	`CUDA_ERROR_MPS_(CONNECTION_FAILED|RPC_FAILURE|SERVER_NOT_READY)|` +
	`MPS client failed to connect|MPS server (has )?(experienced|encountered) a fatal|remote procedural call between the MPS server|MPS server is not ready|` +
	`(?i:\b(cuda|mps)[ _a-z]*(error|code|failure)[ :=(#]*(code )?80[5-7]\b)`)

// claim returns the claim of a line, or nil.
func (r *reader) claim(i int) *Claim {
	it := &r.items[i]
	if it.kind == frame || it.text == "" {
		return nil
	}
	rule, at, end := r.match(i)
	if rule == nil {
		return nil
	}
	c := &Claim{Says: rule.Says, Strength: rule.Strength, Rule: rule.Name, Message: rule.Message, Line: short(it.text)}
	machine := c.Says == Infrastructure || c.Says == MPSFault
	switch isError := it.kind == raised || it.sev == failure || r.ends(i) || machine && initWarning().MatchString(it.text); {
	case it.sev == info && it.kind != raised, it.sev == warning && !rule.anyLevel:
		c.Strength = Weak
	case it.kind == output && (handled().MatchString(it.text) && !unhandled().MatchString(it.text) || r.inDialogue(i) || it.sev != failure && listed().MatchString(it.text)):
		c.Strength = Weak
	case unraised().MatchString(it.text[end:]), quoted(it.text[:at], isError || leads().MatchString(it.msg)):
		c.Strength = Weak
	case !isError && !leads().MatchString(it.msg) && c.Says == GPUOOM && statistic().MatchString(it.text[end:]):
		c.Strength = Weak
	}
	if rule.Name == "cuda-oom" && r.pins(i) {
		c.Says, c.Rule, c.Message = HostOOM, "pinned-host-memory", hostMessage+" (pinned memory)"
	}
	if c.Says == GPUOOM {
		context := r.context(i)
		if rule.Name == "tensorflow-oom" { // two frameworks have an exception of this name
			for j := range rules {
				if other := &rules[j]; (other.Name == "tensorflow-host" || other.Name == "paddle-oom" || other.Name == "paddle-host") && other.match().MatchString(context) {
					c.Says, c.Rule, c.Message = other.Says, other.Name, other.Message
				}
			}
		}
		if c.Says == GPUOOM {
			c.Demand, c.Refused = demand(context)
		}
		if most := r.opt.MostMemory; most > 0 && c.Refused > most || tooMuch().MatchString(it.text) || c.Refused > maxRequest {
			c.Says, c.Message, c.Demand, c.Refused = Program, "it asked for more memory than any GPU has", 0, 0
		}
	}
	return c
}

// maxRequest is the largest plausible request of GPU memory: 4 TiB.
const maxRequest = 4 << 40

var (
	tooMuch = lazyregexp.New(`Tried to allocate more than 1EB|Storage size calculation overflowed|Trying to create tensor with negative dimension`)
	// leads matches the words with which programs begin an error message.
	leads = lazyregexp.New(`^(?i:\(?[\w.:]*(error|exception|failure|fatal|panic\w*)\b|what\(\)|terminate called|thread '[^']*' panicked|called .(Result|Option)::|\w+ exception \(|uncaught|unhandled|check failed|assertion|caused by|failed|unable|cannot|can't|could not|allocat\w*:|out of|not enough)`)
)

// match returns the first rule that a line matches, and the bounds of the match.
func (r *reader) match(i int) (rule *Rule, at, end int) {
	it := &r.items[i]
	for _, text := range r.opt.OOMTexts {
		if at := strings.Index(it.text, text); at >= 0 && text != "" {
			return &Rule{Name: "oom-texts", Says: GPUOOM, Strength: Strong, Message: gpuMessage + " (oom-texts)", anyLevel: true}, at, at + len(text)
		}
	}
	for j := range rules {
		rule := &rules[j]
		if rule.raised && it.kind != raised && !r.ends(i) {
			continue
		}
		if rule.match == nil {
			if at := r.byWords(i, rule.Strength); at != nil {
				return rule, at[0], at[1]
			}
			continue
		}
		at := rule.match().FindStringIndex(it.text)
		if at == nil || rule.not != nil && rule.not().MatchString(it.text) {
			continue
		}
		return rule, at[0], at[1]
	}
	return nil, 0, 0
}

// byWords returns the position in a line that names exhausted memory, or nil. The memory
// must be a GPU's for [Strong], and unnamed for [Words].
func (r *reader) byWords(i int, strength Strength) []int {
	it := &r.items[i]
	if !mayClaim(it.text) {
		return nil
	}
	at := exhausted().FindStringIndex(it.text)
	if at == nil || offGPU().MatchString(it.text) && !gpuFirst().MatchString(it.text) {
		return nil
	}
	gpu := onGPU().MatchString(it.text)
	isError := it.kind == raised || it.sev == failure || leads().MatchString(it.msg) || r.ends(i)
	if !gpu && isError {
		gpu = onGPU().MatchString(r.around(i)) && !bareBadAlloc().MatchString(it.text)
	}
	switch {
	case strength == Strong && gpu:
		return at
	case strength == Words && isError && !bareBadAlloc().MatchString(it.text):
		return at
	}
	return nil
}

// bareBadAlloc matches C++'s and Python's own words for host memory.
var bareBadAlloc = lazyregexp.New(`(?:std::)?bad_alloc\W*$|^(\w+\.)*_?(Array)?MemoryError\b`)
