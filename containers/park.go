package containers

import "context"

// Parker is a [Driver] that can park containers. A parked container has a process
// and a control group, but its program has not begun. So its limits can be set
// before the program looks at the GPU.
type Parker interface {
	// CanPark returns the reason why containers cannot be parked here, or nil if they can.
	// It does not ask the engine.
	CanPark() error
	// Park does the same as Start, except that the program does not begin. A later Start
	// lets it run, also from another process. The container must have been created with
	// [Spec.Park]. pid is the container's process on this machine, in the container's
	// control group, or 0 if the program runs or has run. Park may be repeated. It returns
	// the same errors as Start.
	Park(ctx context.Context, id string) (pid int, err error)
	// BeforeGone sets a function that is called with a container's id while its control
	// group still exists, when its program has ended or is about to be killed. The function
	// may be called more than once for a container. BeforeGone returns false if the engine
	// removes the group too early. Call BeforeGone before the first Park.
	BeforeGone(call func(ctx context.Context, id string)) bool
}
