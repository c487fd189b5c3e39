package containerstest

import (
	"context"
	"fmt"

	"carma/containers"
)

// firstHeld is the process number of the first container that a [Fake] holds;
// the others follow.
const firstHeld = 4_000_001

// HeldPID is the process number of the nth container, from 1 on, that a [Fake]
// has made. No machine has processes of that number.
func HeldPID(n int) int { return firstHeld + n - 1 }

// CanHold returns nil.
func (f *Fake) CanHold() error { return nil }

// Hold makes a container's process without its script.
func (f *Fake) Hold(ctx context.Context, id string) (int, error) {
	lost, err := f.call(ctx, OpHold)
	if err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := f.get("hold", id)
	switch {
	case err != nil:
		return 0, err
	case c.state != containers.StateCreated:
		return 0, lost
	case !c.spec.Hold:
		return 0, fmt.Errorf("hold container %s: it was not made to be held", id)
	}
	return HeldPID(c.number), lost
}

// BeforeGone sets what is called when a container's end is told, or before it
// is removed.
func (f *Fake) BeforeGone(call func(ctx context.Context, id string)) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.beforeGone = call
	return true
}

// leave calls what BeforeGone was given, once for a container, without the
// engine's mutex that the caller holds.
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
