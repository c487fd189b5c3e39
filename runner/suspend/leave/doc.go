// Package leave asks tasks to vacate their GPUs, and to return to them. A program that
// offers this copies its tensors to host memory between two steps. This does not need the
// driver, and works with NCCL and MPS.
//
// A folder of the machine is mounted into the container of such a task. carma writes
// orders into it, and the program writes its offer and its answers:
//
//	order         leave 3, or return 4        of carma alone
//	task/offer    carma-leave 1               of the task's user
//	task/answer   left 3, here 4, or cannot 3 REASON
//
// All are one line, and are replaced by renaming. An order's number is one higher than
// the previous order's; the answer has it too. The folder outlives the daemon, so the
// next daemon knows the state of the task.
//
// carma checks once a second whether a program offers it, and from then on may suspend it
// also where the driver cannot. A program that has not answered within a minute, or
// cannot, is left to the driver. There is no signal: it would end a program that no
// longer handles it. A task that does not return in time is ordered to stay suspended,
// and is asked again later. It returns to the GPUs that it had, because it sees no
// others. Only the driver can move it. Its CUDA context and NCCL's buffers stay on the
// GPU and count as foreign memory, for all but the task itself.
//
// Files of the task's user are not trusted: they are read without following links, and
// only their first bytes.
package leave
