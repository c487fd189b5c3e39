package runner

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"carma/containers"
	"carma/mapper"
)

// spec is what the container of an attempt is made from. It is asked for where
// there is no container yet: one that exists is taken over without it.
func (w *worker) spec() (containers.Spec, error) {
	mode, _, err := w.attach()
	if err != nil {
		return containers.Spec{}, err
	}
	sub := w.rec.Submit
	grant := w.mostGranted()
	spec := containers.Spec{
		Name:       w.containerName(w.launch.Task, w.launch.Attempt),
		Image:      sub.Image,
		Labels:     w.about(mode),
		Identity:   w.identity(),
		Entrypoint: sub.Entrypoint,
		Command:    sub.Command,
		WorkDir:    sub.WorkDir,
		ShmSize:    sub.ShmSize,
		GPUs:       w.uuids(),
		Attach:     mode,
		Env: []string{
			"CARMA_TASK=" + w.launch.Task.String(),
			"CARMA_ATTEMPT=" + strconv.Itoa(w.launch.Attempt),
			"CARMA_GRANT_BYTES=" + strconv.FormatInt(int64(grant), 10),
		},
		NoNewPrivileges: true,
		LogBytes:        w.Logs.Limits().Attempt,
		Hold:            len(w.limited()) > 0,
	}
	spec.User = sub.User
	if sub.BatchSize > 0 { // what the estimate is of, so that the program can train with it
		spec.Env = append(spec.Env, "CARMA_BATCH_SIZE="+strconv.Itoa(sub.BatchSize))
	}
	spec.Env = append(spec.Env, sub.Env...)
	if w.rec.UID != 0 {
		spec.User = fmt.Sprintf("%d:%d", w.rec.UID, w.rec.GID)
	}
	spec.Mounts = bindMounts(w.rec)
	if w.opt.Devices != nil {
		mounts, env := w.opt.Devices(w.launch.Task, w.launch.Attempt)
		spec.Mounts = append(spec.Mounts, mounts...)
		spec.Env = append(spec.Env, env...)
	}
	spec.Env = append(spec.Env, w.caps()...)
	w.share(&spec)
	return spec, nil
}

// grace is the time a task gets between the stop signal and the kill.
func (r *Runner) grace(task mapper.TaskID) time.Duration {
	if g, ok := r.graces.Load(task); ok {
		return g.(time.Duration)
	}
	if rec, _ := r.book.get(task); rec != nil && rec.Submit.StopGrace > 0 {
		return rec.Submit.StopGrace
	}
	return r.opt.StopGrace
}

// create makes the container, and fetches its image if it has to.
func (w *worker) create(ctx context.Context, spec containers.Spec) (id string, err error) {
	_, err = w.engine.retry(ctx, func() (err error) { id, err = w.Driver.Create(ctx, spec); return err })
	if errors.Is(err, containers.ErrNotFound) && w.pullPolicy(w.rec.Submit.Pull) != "never" {
		// Accepted while the engine was down, or removed since.
		if err = w.Driver.Pull(ctx, spec.Image); err == nil {
			return w.Driver.Create(ctx, spec)
		}
		err = fmt.Errorf("%w: image %s is not on this machine and cannot be pulled: %w", containers.ErrInvalid, spec.Image, err)
	}
	return id, err
}
