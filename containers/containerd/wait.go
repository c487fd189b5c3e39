package containerd

import (
	"context"
	"encoding/json"
	"time"

	"github.com/opencontainers/runtime-spec/specs-go"

	"carma/containers"
	"carma/containers/containerd/logfile"
)

// Wait blocks until the container has ended. How it ended is written down in
// its labels, because containerd knows it only until the machine restarts.
func (d *Driver) Wait(ctx context.Context, id string) (containers.Exit, error) {
	what := "wait for container " + id
	for pause := time.Duration(0); ; {
		r, err := d.look(ctx, id)
		if err != nil {
			return containers.Exit{}, d.fail(ctx, what, err)
		}
		if e, ok := r.exit(); ok {
			if r.task != nil { // what wrote the exit down did not come further
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
			// Between the two looks, of the labels and the task, a start may have
			// come (then there is a task now) or a removal (then look says so).
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
			if err := d.awaitTask(ctx, id); err != nil {
				return containers.Exit{}, d.fail(ctx, what, err)
			}
			pause = 0
			continue
		}
		// Not started yet.
		pause = min(2*pause+10*time.Millisecond, 500*time.Millisecond)
		select {
		case <-ctx.Done():
			return containers.Exit{}, d.fail(ctx, what, ctx.Err())
		case <-time.After(pause):
		}
	}
}

// ended writes down how a container ended, and deletes its task: the shim goes,
// and the logger gets the end of the output. What was written first stands.
func (d *Driver) ended(ctx context.Context, what, id string, e containers.Exit) (containers.Exit, error) {
	// The start is stamped before the program runs, the end by the shim; a
	// clock may have been set back in between.
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

// spec is the container's OCI specification; nil if it cannot be read.
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

// sandboxed reports whether it was made with [containers.Spec.Sandbox].
func (r *record) sandboxed() bool { return r.Labels[labelSandbox] != "" }
