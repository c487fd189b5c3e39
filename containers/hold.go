package containers

import "context"

// Holder is a [Driver] that can have a container made and its program held, so
// that something can be done to it from outside before it runs.
type Holder interface {
	// CanHold says why containers cannot be held here; nil: they can. It does not
	// ask the engine.
	CanHold() error
	// Hold does what Start does, but leaves the program held; Start, then or
	// later, also of another process, lets it run. The container must have been
	// created with [Spec.Hold]. pid is the number on this machine of the
	// container's process, which is in the container's control group, or 0 for
	// one that runs or has run already. It may be repeated. Errors are Start's.
	Hold(ctx context.Context, id string) (pid int, err error)
	// BeforeGone sets what is called with a container's id when its program has
	// ended, or is to be killed for good, and its control group is still there.
	// It may be called more than once for a container. It returns false if the
	// engine removes the group before anybody can do anything. To be called
	// before the first Hold.
	BeforeGone(call func(ctx context.Context, id string)) bool
}
