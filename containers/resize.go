package containers

import "context"

// Resizer is a [Driver] that can change what a container may use while it runs.
type Resizer interface {
	// SetMemory changes the limit of a running container's memory, in bytes, as
	// [Spec].Memory has it. It may be repeated. It fails if the container uses more
	// than that, and does nothing for one that does not run or is gone.
	SetMemory(ctx context.Context, id string, bytes int64) error
}
