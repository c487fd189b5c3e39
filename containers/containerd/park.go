package containerd

import (
	"context"
	"fmt"
)

// CanPark returns nil: containerd can always create a container without starting it.
func (d *Driver) CanPark() error { return nil }

// Park creates the container in the kernel. Its process is runc's at first. It waits in
// the container's control group and later becomes the program.
func (d *Driver) Park(ctx context.Context, id string) (pid int, err error) {
	what := "park container " + id
	defer d.lock(id)()
	r, err := d.look(ctx, id)
	if err != nil {
		return 0, d.fail(ctx, what, err)
	}
	if err := r.failure(); err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	if r.Labels[labelExit] != "" || r.running() || r.stopped() || r.lost() {
		return 0, nil
	}
	t, err := d.made(ctx, r)
	if err != nil {
		return 0, d.startFailed(ctx, what, id, err)
	}
	return int(t.Pid), nil
}

// BeforeGone sets a function that is called before a container's task, and with it the
// control group, is deleted. BeforeGone returns true, because only this driver deletes
// tasks.
func (d *Driver) BeforeGone(call func(ctx context.Context, id string)) bool {
	d.beforeGone = call
	return true
}
