package containers

import (
	"regexp"

	"carma/configs/patterns"
)

// rule is a row of the table by which the output of a failed program is judged.
// The texts come from the frameworks' sources and from reports about them.
type rule struct {
	name  string
	class Class
	match func() *regexp.Regexp
	// not excludes some lines that match.
	not func() *regexp.Regexp
	// raised: the rule counts only for the last line of a Python traceback,
	// because its text is common elsewhere.
	raised bool
	// cardFull: the rule counts only if the card was full.
	cardFull bool
	message  string
}

const (
	gpuMessage  = "out of GPU memory"
	hostMessage = "out of host memory"
)

// rules are tried in order on each line; the first match counts.
var rules = []rule{
	{name: "mps-evicted", class: ClassEvicted, message: "MPS ended the client to take its memory back",
		match: re(`cudaErrorMpsClientTerminated|CUDA_ERROR_MPS_CLIENT_TERMINATED|MPS client (has been |was )?terminated|` +
			`(?i:\b(cuda|mps)[ _a-z]*(error|code|failure)[ :=(#]*(code )?810\b)`)},
	{name: "mps-fault", class: ClassMPSFault, message: "the MPS server failed",
		match: mpsFault},
	{name: "mps-full", class: ClassInfrastructure, message: "the MPS server has no room for another client",
		match: re(`cudaErrorMpsMax(Clients|Connections)Reached|CUDA_ERROR_MPS_MAX_(CLIENTS|CONNECTIONS)_REACHED|` +
			`hardware resources required to (create MPS client|support device connections)|` +
			`(?i:\b(cuda|mps)[ _a-z]*(error|code|failure)[ :=(#]*(code )?80[89]\b)`)},
	{name: "nccl-duplicate-gpu", class: ClassProgram,
		message: "NCCL found one GPU in use by two ranks of the task: the program picked its device wrongly, or carma placed it wrongly",
		match:   re(`Duplicate GPU detected`)},
	{name: "nvml-lost", class: ClassInfrastructure, message: "the container lost its GPU devices",
		match: re(`Failed to initialize NVML: (Unknown Error|Driver/library version mismatch)`)},
	{name: "gpu-hardware", class: ClassInfrastructure, message: "the GPU failed",
		match: re(`uncorrectable (NVLink|ECC) error|GPU is lost|cudaErrorECCUncorrectable|CUDA_ERROR_ECC_UNCORRECTABLE`)},

	{name: "hami-limit", class: ClassGPUOOM, message: "over the GPU memory limit (HAMi)",
		match: re(`\[HAMI-core.*Device \d+ OOM|^Device \d+ OOM \d`)},
	{name: "nccl-oom", class: ClassGPUOOM, message: gpuMessage + " (NCCL)",
		match: re(`(?i)cuda failure (\d+ )?'out of memory'`)},
	{name: "rmm-oom", class: ClassGPUOOM, message: gpuMessage + " (RMM)",
		match: re(`bad_alloc: out_of_memory: (CUDA|RMM)`)},
	{name: "cupy-oom", class: ClassGPUOOM, message: gpuMessage + " (CuPy)",
		match: re(`^cupy\S*\.OutOfMemoryError: `)},
	{name: "pytorch-oom", class: ClassGPUOOM, message: gpuMessage + " (PyTorch)",
		match: re(`CUDA out of memory\. Tried to allocate|^torch\.(cuda\.)?OutOfMemoryError: `)},
	{name: "pytorch-oom", class: ClassGPUOOM, message: gpuMessage + " (PyTorch)", raised: true,
		match: re(`^(\w+\.)*(OutOfMemoryError|RuntimeError|RayTaskError\(\w+\)): CUDA out of memory`)},
	{name: "cuda-oom", class: ClassGPUOOM, message: gpuMessage + " (CUDA)",
		match: re(`(?i:cuda (runtime |driver )?(error|failure)[ :]*(\(?2\)?[ :,]*)?\(?"?out of memory)|` +
			`cudaErrorMemoryAllocation|cudaMalloc\w*( failed)?: out of memory|Status: out of memory|` +
			`Out of GPU memory trying to allocate`)},
	{name: "cuda-driver-oom", class: ClassGPUOOM, message: gpuMessage + " (CUDA driver)",
		match: re(`CUDA_ERROR_OUT_OF_MEMORY|(?i:cuMem\w*alloc\w*.*out of memory)`)},
	{name: "tensorflow-host", class: ClassHostOOM, message: hostMessage + " (TensorFlow on CPU)",
		match: re(`OOM when allocating tensor.*(device:CPU|by allocator (mkl)?cpu)`)},
	{name: "tensorflow-oom", class: ClassGPUOOM, message: gpuMessage + " (TensorFlow)",
		match: re(`ResourceExhaustedError|OOM when allocating tensor|Dst tensor is not initialized`),
		not:   re(`No space left|Too many open|disk quota`)},
	{name: "jax-oom", class: ClassGPUOOM, message: gpuMessage + " (XLA)",
		match: re(`(RESOURCE_EXHAUSTED|Resource exhausted):? .*(?i:out of memory|allocat)`),
		not:   re(`not a failure|StatusCode\.|larger than max`)},
	{name: "cuda-library-oom", class: ClassGPUOOM, message: gpuMessage + " (CUDA library)",
		match: re(`CU(BLAS|DNN|SOLVER|SPARSE)_STATUS_ALLOC_FAILED|CUFFT_ALLOC_FAILED`)},
	{name: "cuda-library-suspect", class: ClassGPUOOM, cardFull: true,
		message: gpuMessage + " (a CUDA library could not start on a full card)",
		match:   re(`CUBLAS_STATUS_NOT_INITIALIZED|CUDNN_STATUS_(NOT_SUPPORTED|NOT_INITIALIZED|INTERNAL_ERROR)`)},

	{name: "device-assert", class: ClassProgram, message: "a check in GPU code failed (device-side assert)",
		match: re(`device-side assert triggered|cudaErrorAssert\b`)},
	{name: "illegal-access", class: ClassProgram, message: "GPU code used memory that is not its own (illegal memory access)",
		match: re(`illegal memory access|cudaErrorIllegalAddress|CUDA_ERROR_ILLEGAL_ADDRESS`)},

	{name: "worker-shm", class: ClassHostOOM, message: "a data loader ran out of shared memory",
		match: re(`DataLoader worker .* killed by signal: Bus error|(unable to (open|mmap|allocate|write to file).*(shared memory|/torch_|/dev/shm))`)},
	{name: "worker-killed", class: ClassHostOOM, message: "a data loader was killed, most likely for host memory",
		match: re(`DataLoader worker .* killed by signal: Killed`)},
	{name: "bus-error", class: ClassHostOOM, message: "bus error, most likely too little shared memory",
		match: re(`^(\S+: line \d+: +\d+ )?Bus error\b( +\(core dumped\))?|^Fatal Python error: Bus error`)},
	{name: "host-oom", class: ClassHostOOM, message: hostMessage,
		match: re(`DefaultCPUAllocator: (can't allocate|not enough) memory|Out of memory: Killed process|oom-kill`)},
	{name: "host-oom", class: ClassHostOOM, message: hostMessage, raised: true,
		match: re(`^(\w+\.)*_?(Array)?MemoryError\b|^OSError: \[Errno 12\]|std::bad_alloc`)},
}

// NoMPSServer reports whether a line of output says that a program could not reach its
// MPS server, or lost it (CUDA errors 805 to 807).
func NoMPSServer(line []byte) bool { return mpsFault().Match(line) }

// mpsFault is the match of that rule.
var mpsFault = re(`cudaErrorMps(ConnectionFailed|RpcFailure|ServerNotReady)|` +
	`CUDA_ERROR_MPS_(CONNECTION_FAILED|RPC_FAILURE|SERVER_NOT_READY)|` +
	`MPS client failed to connect|remote procedural call between the MPS server|MPS server is not ready|` +
	`(?i:\b(cuda|mps)[ _a-z]*(error|code|failure)[ :=(#]*(code )?80[5-7]\b)`)

// cudaError matches a line in which a program reports a CUDA error.
var cudaError = re(`(?i:cuda (runtime |driver )?(error|failure))|cudaError|CUDA_ERROR_|CU(BLAS|DNN)_STATUS_|device-side assert|illegal memory access|unspecified launch failure`)

// consequence matches an exception that usually follows from a failure elsewhere,
// mostly in another process. It tells nothing about the cause.
var consequence = re(`ChildFailedError|Process(Raised|Exited)Exception|Dist(Backend|Network|Store)?Error|(?i:\bnccl|\bgloo\b)|` +
	`(?i:connection (closed|reset|refused|aborted))|Connection\w+Error|BrokenPipeError|Broken ?[Pp]rocess ?[Pp]ool|EOFError|` +
	`CalledProcessError|SystemExit|SignalException|KeyboardInterrupt|InactiveRpcError|Ray(Task|Actor)Error|ActorDiedError|` +
	`WorkerCrashedError|DataLoader worker|TimeoutError|(?i:watchdog|process group|socket timeout)|CU(BLAS|DNN)_STATUS_|` +
	`(?i:cudnn (error|failed))|InternalError|(Xla|Jax)RuntimeError: (INTERNAL|ABORTED|UNAVAILABLE|FAILED_PRECONDITION|DEADLINE)|` +
	`CUDA error: (unspecified launch failure|unknown error)`)

// survived matches a line that says itself that the program went on.
var survived = re(`(?i)\b(skipp(ed|ing)|retry(ing)?|caught|recover(ed|ing)|ignor(ed|ing)|reduc(ed|ing)|halv(ed|ing)|falling back|not a failure)\b`)

// advice matches words before which a line only talks about an error: it did not
// happen.
var advice = re(`(?i)\b(if|whenever|avoids?|prevents?|in case of|hints?|tips?|check(s|ing)? for|guards?|handlers?)\b`)

// re is a short name for the tables.
var re = patterns.New

// ruleFor returns the rule that a line matches, and the index of the match; nil:
// none. raised: the line is the last one of a traceback.
func ruleFor(text string, raised bool, facts Facts) (*rule, int) {
	for i := range rules {
		r := &rules[i]
		if r.raised && !raised || r.cardFull && !facts.CardFull {
			continue
		}
		at := r.match().FindStringIndex(text)
		if at == nil || r.not != nil && r.not().MatchString(text) {
			continue
		}
		return r, at[0]
	}
	return nil, 0
}
