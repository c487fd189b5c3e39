package containerd

import (
	"context"
	"encoding/json"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"

	"carma/containers"
	"carma/containers/containerd/logfile"
)

// Wait blocks until the container has ended. It records the end in the container's
// labels, because containerd forgets the end when the machine restarts.
func (d *Driver) Wait(ctx context.Context, id string) (containers.Exit, error) {
	what := "wait for container " + id
	for pause := time.Duration(0); ; {
		r, err := d.look(ctx, id)
		if err != nil {
			return containers.Exit{}, d.fail(ctx, what, err)
		}
		if e, ok := r.exit(); ok {
			if r.task != nil { // an earlier call recorded the exit but did not delete the task
				return d.ended(ctx, what, id, e)
			}
			return e, nil
		}
		switch {
		case r.stopped():
			e := containers.Exit{
				Code: int(r.task.ExitStatus), OOMKilled: oomKilled(r.spec()),
				Started: r.started(), Finished: r.task.ExitedAt.AsTime().UTC(),
			}
			return d.ended(ctx, what, id, e)
		case r.lost():
			// The labels and the task are read one after the other. In between, the container may
			// have been started (then it has a task now) or removed (then look returns an error).
			again, err := d.look(ctx, id)
			if err != nil {
				return containers.Exit{}, d.fail(ctx, what, err)
			}
			if !again.lost() {
				continue
			}
			e := containers.Exit{Code: 255, Lost: true, Started: r.started(), Finished: logfile.Newest(r.Labels[labelDir])}
			return d.ended(ctx, what, id, e)
		case r.task != nil:
			d.takeOver(r)
			if err := d.awaitTask(ctx, id); err != nil {
				return containers.Exit{}, d.fail(ctx, what, err)
			}
			pause = 0
			continue
		}
		// The container is not started yet.
		pause = min(2*pause+10*time.Millisecond, 500*time.Millisecond)
		select {
		case <-ctx.Done():
			return containers.Exit{}, d.fail(ctx, what, ctx.Err())
		case <-time.After(pause):
		}
	}
}

// ended records how a container ended, and deletes its task, so that its shim ends and
// the logger gets the rest of the output. Only the first record counts.
func (d *Driver) ended(ctx context.Context, what, id string, e containers.Exit) (containers.Exit, error) {
	// The daemon stamps the start, the shim the end. The clock may have been set back in
	// between.
	if e.Finished.Before(e.Started) {
		e.Finished = e.Started
	}
	defer d.lock(id)()
	r, err := d.look(ctx, id)
	if err != nil {
		return containers.Exit{}, d.fail(ctx, what, err)
	}
	first, ok := r.exit()
	if ok {
		e = first
	} else {
		b, err := json.Marshal(e)
		if err == nil {
			err = d.note(ctx, id, map[string]string{labelExit: string(b)})
		}
		if err != nil {
			return containers.Exit{}, d.fail(ctx, what, err)
		}
	}
	return e, d.fail(ctx, what, d.endTask(ctx, id))
}

// spec returns the container's OCI specification, or nil if it cannot be read.
func (r *record) spec() *specs.Spec {
	if r.Spec == nil {
		return nil
	}
	var s specs.Spec
	if err := json.Unmarshal(r.Spec.GetValue(), &s); err != nil {
		return nil
	}
	return &s
}

// sandboxed reports whether the container was made with
// [containers.Spec.Sandbox].
func (r *record) sandboxed() bool { return r.Labels[labelSandbox] != "" }
