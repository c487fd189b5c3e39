// Package suspend takes a running CUDA process off its GPU and puts it back, unchanged,
// on the same or another GPU of the same kind. It uses the checkpoint functions of
// NVIDIA's driver (libcuda.so.1, driver 570 and newer).
//
// A [Helper] makes the calls in a process of its own: a call of the driver may hang or
// crash, and cuInit takes some seconds, so there is one helper for all calls. A
// [Suspender] performs the steps for a task: check, lock, checkpoint and freeze; thaw,
// restore and unlock. Every operation ends with an [Outcome].
//
// The caller decides which task is suspended, and when, and provides the host memory for
// it. The package reads neither NVML nor the engine.
//
// # What the driver needs and refuses
//
//   - Driver 570 for suspending, 580 for another GPU: of the same chip, with enough free
//     memory, and with a list that names every GPU that the driver knows the process to
//     have. With fewer GPUs visible a move failed with "invalid argument"
//     (NVIDIA/cuda-python#1983, cuda-checkpoint#35). Whether a container with one GPU can
//     be moved is not measured: its device rules allow only the first.
//   - x86-64: on arm64 checkpoint returns "not supported" with driver 580 (cuda-checkpoint#51).
//   - One CUDA process: processes that talk by NCCL hang or do not come back (#30, #45,
//     #47); restore failed with 2 GPUs (#27). Data-loader workers do not count (#28).
//   - No MIG: "out of memory" (#42). No client of MPS: lock returns "not supported".
//   - No managed memory (UVM): driver 570 leaves the process in a bad state; with a newer
//     one, a thread that touches such memory between thaw and restore would crash. It
//     cannot be seen from outside. CUDA IPC needs driver 610 and is not checked either.
//   - Host memory: the copy is the process's own memory, within the container's limit,
//     which the daemon raises before and lowers after. A suspended process is not in NVML.
//
// # The helper
//
// It stays running, because cuInit takes some 2.7 s each time (NVIDIA/nvcf#263; 0.1 s on
// an H100 with persistence mode). At most 16 calls run at the same time. If one hangs, no
// further call begins, the helper waits for the others up to their limits, and is
// replaced. If it crashes during several calls, they are repeated one at a time, to find
// the task at fault. There is never more than one: a lock file separates the helpers of
// two daemons.
//
//	start of the helper    1 min
//	lock                   10 s by the driver itself, and 5 s more
//	checkpoint, restore    30 s and 2 s per GB; 5 min if the memory is not known
//	state, unlock, freeze  10 s
//
// Each step begins with the driver's own answer about the state. On the way back to
// running, a failed call is made up to three times. A lock that timed out may still have
// taken effect (checkpoint-restore/criu#2469), so it is undone as well.
//
// # Limits
//
// The CPU side stays on the machine: this is no checkpoint on disk. Between checkpoint
// and freeze, and between thaw and unlock, the program's threads run without CUDA. Tests
// use a library in C that simulates the driver's functions (testdata/libcuda.c). Not
// measured: several GPUs, moving, data-loader workers, host memory limits.
//
// Sources: the CUDA driver API, "CUDA Checkpointing"
// (docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__CHECKPOINT.html); NVIDIA's
// cuda-checkpoint, README and issues (#N above); CRIU's CUDA plugin.
package suspend
