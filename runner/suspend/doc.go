// Package suspend takes a running CUDA process off its GPU and puts it back,
// unchanged, on the same or another GPU of the same kind. It uses the checkpoint
// functions of NVIDIA's driver (libcuda.so.1, driver 570 and newer).
//
// A [Helper] makes the calls in a process of its own: a call of the driver may hang
// or crash, and cuInit takes some seconds, so there is one helper that lives on. A
// [Suspender] does what a task needs: check, lock, checkpoint and freeze; thaw,
// restore and unlock. Every operation ends with an [Outcome].
//
// The package decides nothing: which task is suspended, when, and where the host
// memory for it comes from is the caller's. It does not read NVML and asks no engine.
//
// Sources: the CUDA driver API, "CUDA Checkpointing"
// (docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__CHECKPOINT.html); NVIDIA's
// cuda-checkpoint, README and issues; CRIU's CUDA plugin. docs/suspend.md has what
// follows from them and what was not measured yet.
package suspend
