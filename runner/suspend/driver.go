package suspend

import "fmt"

// State is the driver's state of a CUDA process (CUprocessState). The numbers are from
// the driver.
type State int32

// States of a process. Checkpointing and Restoring are reported by drivers with CUDA 13.4
// and newer. Older drivers report the previous state.
const (
	Running       State = iota // CUDA calls of the process work
	Locked                     // its CUDA calls wait; its memory is on the GPU
	Checkpointed               // its CUDA calls wait; its memory is in host memory
	Failed                     // a checkpoint or restore failed; the process is lost
	Checkpointing              // becoming Checkpointed
	Restoring                  // becoming Locked
)

var stateNames = [...]string{"running", "locked", "checkpointed", "failed", "checkpointing", "restoring"}

func (s State) String() string {
	if s >= 0 && int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", int32(s))
}

// Call is a function of the driver.
type Call string

// Calls of the driver. Init and State change nothing.
const (
	CallInit       Call = "init"       // cuInit
	CallState      Call = "state"      // cuCheckpointProcessGetState
	CallLock       Call = "lock"       // cuCheckpointProcessLock: running -> locked
	CallCheckpoint Call = "checkpoint" // cuCheckpointProcessCheckpoint: locked -> checkpointed
	CallRestore    Call = "restore"    // cuCheckpointProcessRestore: checkpointed -> locked
	CallUnlock     Call = "unlock"     // cuCheckpointProcessUnlock: locked -> running
)

// Code is an error code of the driver (CUresult); 0 is success.
type Code int32

// Codes that this package handles. The first six are documented for the checkpoint
// functions, the others were reported (cuda-checkpoint issues 10, 37, 42) or are from
// cuInit.
const (
	CodeInvalidValue   Code = 1
	CodeOutOfMemory    Code = 2
	CodeNotInitialized Code = 3
	CodeIllegalState   Code = 401
	CodeNotReady       Code = 600
	CodeNotSupported   Code = 801
	CodeStubLibrary    Code = 34
	CodeNoDevice       Code = 100
	CodeSystem         Code = 304
	CodeNotPermitted   Code = 800
	CodeMismatch       Code = 803
	CodeUnknown        Code = 999
)

var codeWords = map[Code]string{
	CodeInvalidValue:   "INVALID_VALUE: no such CUDA process, or a wrong argument",
	CodeOutOfMemory:    "OUT_OF_MEMORY: not enough memory on the GPU or the machine",
	CodeNotInitialized: "NOT_INITIALIZED: the process does not use CUDA",
	CodeIllegalState:   "ILLEGAL_STATE: the process is in another state",
	CodeNotReady:       "NOT_READY: the process did not come to rest in time",
	CodeNotSupported:   "NOT_SUPPORTED: the driver cannot do this for the process",
	CodeStubLibrary:    "STUB_LIBRARY: the library is a stub for compilers, not the driver's",
	CodeNoDevice:       "NO_DEVICE: the driver finds no GPU",
	CodeSystem:         "OPERATING_SYSTEM: a call of the system failed",
	CodeNotPermitted:   "NOT_PERMITTED: run carma daemon as root",
	CodeMismatch:       "SYSTEM_DRIVER_MISMATCH: the kernel's driver and its library are of different versions",
	CodeUnknown:        "UNKNOWN: the driver gives no reason; look at dmesg",
}

func (c Code) String() string {
	if words := codeWords[c]; words != "" {
		return fmt.Sprintf("CUDA error %d, %s", int32(c), words)
	}
	return fmt.Sprintf("CUDA error %d", int32(c))
}

// Pair moves a process's memory on one GPU to another of the same chip. Both are UUIDs as
// NVML has them.
type Pair struct {
	Old string `json:"old"`
	New string `json:"new"`
}
