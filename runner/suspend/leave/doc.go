// Package leave asks tasks to leave their GPUs by themselves, and to come back. A
// program that offers it copies its tensors to host memory between two steps. That needs
// nothing of the driver, and works with NCCL and MPS.
//
// A folder of the machine is mounted into the container of such a task. carma writes an
// order into it, the program its offer and its answers:
//
//	order         leave 3, or return 4        of carma alone
//	task/offer    carma-leave 1               of the task's user
//	task/answer   left 3, here 4, or cannot 3 REASON
//
// All are one line, and are replaced by renaming. An order's number is one higher than
// that of the order before; the answer has it too. The folder outlives the daemon, so
// the next one knows where the task is.
//
// carma looks once a second whether a program offers it, and from then on may suspend it
// also where the driver cannot. A program that has not answered within a minute, or cannot,
// is left to the driver. There is no signal: one that nobody heeds any more would end the
// program. A task that does not return in time is told to stay away, and is asked again
// later. It comes back to the GPUs that it had, because it sees no others: to move it, the
// driver is asked. Its CUDA context and NCCL's buffers stay on the GPU and count as
// foreign memory, for all but the task itself.
//
// What the task's user writes is not trusted: files are read without following links,
// and only their first bytes.
package leave
