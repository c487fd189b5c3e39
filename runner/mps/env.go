package mps

import (
	"fmt"
	"strconv"
	"strings"
)

// Limits bound a task's use of each visible GPU.
type Limits struct {
	// Memory is the limit for each GPU in bytes, in the order in which the task sees
	// them. 0 means no limit on that GPU.
	Memory []int64
	// Threads is the largest share of SMs that the task may use at a time, in percent, or
	// 0 for no limit.
	Threads int
}

// Env returns the environment of a client. pipe is the path in the client of its control
// daemon's pipe folder.
//
// Memory is written for every GPU that the task sees and for no other, because the driver
// drops all limits if an entry is for a GPU that a process cannot see.
func (l Limits) Env(pipe string) []string {
	env := []string{"CUDA_MPS_PIPE_DIRECTORY=" + pipe}
	if l.Threads > 0 {
		env = append(env, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE="+strconv.Itoa(l.Threads))
	}
	var memory []string
	for i, bytes := range l.Memory {
		if bytes > 0 {
			memory = append(memory, fmt.Sprintf("%d=%dM", i, (bytes+1<<20-1)>>20))
		}
	}
	if len(memory) > 0 {
		env = append(env, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT="+strings.Join(memory, ","))
	}
	return env
}
