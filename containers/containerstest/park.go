package containerstest

import (
	"context"
	"fmt"

	"carma/containers"
)

// firstParked is the PID of the first container of a [Fake]; later containers count up
// from it.
const firstParked = 4_000_001

// ParkedPID returns the PID of the nth container, from 1 on, that a [Fake] has made. Real
// machines have no such high PIDs in practice.
func ParkedPID(n int) int { return firstParked + n - 1 }

// CanPark returns nil.
func (f *Fake) CanPark() error { return nil }

// Park makes a container's process without its script.
func (f *Fake) Park(ctx context.Context, id string) (int, error) {
	lost, err := f.call(ctx, OpPark)
	if err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := f.get("park", id)
	switch {
	case err != nil:
		return 0, err
	case c.state != containers.StateCreated:
		return 0, lost
	case !c.spec.Park:
		return 0, fmt.Errorf("park container %s: it was not made to be parked", id)
	}
	return ParkedPID(c.number), lost
}

// BeforeGone sets a function that is called before a container's end is reported or the
// container is removed.
func (f *Fake) BeforeGone(call func(ctx context.Context, id string)) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.beforeGone = call
	return true
}

// leave calls the function of BeforeGone, once per container. The caller holds the
// engine's mutex; leave unlocks it meanwhile.
func (f *Fake) leave(ctx context.Context, c *fakeContainer) {
	if f.beforeGone == nil || c.gone {
		return
	}
	c.gone = true
	call := f.beforeGone
	f.mu.Unlock()
	defer f.mu.Lock()
	call(ctx, c.id)
}
