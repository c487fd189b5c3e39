package containers

import "context"

// Resizer is a [Driver] that can change what a container may use while it runs. Both
// calls may be repeated, and do nothing for a container that does not run or is gone.
type Resizer interface {
	// SetMemory changes the limit of a running container's memory, in bytes, as
	// [Spec].Memory has it. It fails if the container uses more than that, or the
	// kernel ends it.
	SetMemory(ctx context.Context, id string, bytes int64) error
	// SetCPUs changes the processors of a running container and its part of them where
	// they are short, as [Spec].CPUs and [Spec].CPUWeight have them. cpus of 0: all;
	// weight of 0: as it was.
	SetCPUs(ctx context.Context, id string, cpus float64, weight int64) error
}
