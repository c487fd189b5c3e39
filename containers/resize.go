package containers

import "context"

// Resizer is a [Driver] that can change the limits of a running container. Both calls may
// be repeated, and do nothing for a container that does not run or does not exist.
type Resizer interface {
	// SetMemory changes the memory limit of a running container, in bytes, see
	// [Spec].Memory. It fails if the container uses more than that, or the kernel kills the
	// container.
	SetMemory(ctx context.Context, id string, bytes int64) error
	// SetCPUs changes the CPU limit and the CPU weight of a running container, see
	// [Spec].CPUs and [Spec].CPUWeight. cpus of 0 removes the limit; weight of 0 leaves the
	// weight unchanged.
	SetCPUs(ctx context.Context, id string, cpus float64, weight int64) error
}
