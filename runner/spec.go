package runner

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"carma/containers"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/containerfiles"
	"carma/runner/gpushare"
	"carma/runner/helpers"
	"carma/runner/label"
	"carma/runner/loop"
	"carma/runner/pull"
	"carma/runner/record"
	"carma/runner/rights"
)

// spec returns the specification of the attempt's container. It is only needed to make a
// container; an existing container is adopted without it.
func (w *worker) spec() (containers.Spec, error) {
	mode, nodes, err := w.attachment()
	if err != nil {
		return containers.Spec{}, err
	}
	if w.rec.Job != nil {
		return w.jobSpec(mode), nil
	}
	sub := w.rec.Submit
	options, err := w.deps.Daemon.Options(w.rec)
	if err != nil {
		return containers.Spec{}, fmt.Errorf("%w: %w", containers.ErrInvalid, err)
	}
	grant := w.mostGranted()
	spec := containers.Spec{
		Name:             w.containerName(),
		Image:            sub.Image,
		Labels:           label.Describe(w.rec, w.launch, mode),
		Identity:         w.identity(),
		Entrypoint:       sub.Entrypoint,
		Command:          sub.Command,
		ContainerOptions: options,
		GPUs:             w.uuids(),
		Attach:           mode,
		Nodes:            nodes,
		Env: []string{
			"CARMA_TASK=" + w.launch.Task.String(),
			"CARMA_ATTEMPT=" + strconv.Itoa(w.launch.Attempt),
			"CARMA_GRANT_BYTES=" + strconv.FormatInt(int64(grant), 10),
		},
		NoNewPrivileges: true,
		LogBytes:        w.deps.Logs.Limits().Attempt,
		StopGrace:       w.deps.Daemon.Grace(w.rec),
		GPUMemory:       int64(grant),
		Park:            w.memory.Limited(),
	}
	w.deps.Daemon.Bounds().Bound(&spec, sub, w.launch.Host)
	if w.deps.NearCPUs {
		spec.CPUSet = w.nearCPUs()
	}
	spec.User = sub.User
	if sub.BatchSize > 0 { // the batch size of the estimate, so that the program can train with it
		spec.Env = append(spec.Env, "CARMA_BATCH_SIZE="+strconv.Itoa(sub.BatchSize))
	}
	if w.rec.Says != nil && w.rec.Says.Unbuffered {
		spec.Env = append(spec.Env, unbuffered+"=1")
	}
	spec.Env = append(spec.Env, sub.Env...)
	spec.Namespace, spec.Account = sub.Namespace, sub.ServiceAccount
	if w.rec.UID != 0 && !rights.OfCluster(w.rec.UID) {
		spec.User = fmt.Sprintf("%d:%d", w.rec.UID, w.rec.GID)
	}
	spec.Mounts = containerfiles.Mounts(w.rec)
	if err := w.mountVacate(&spec); err != nil {
		return containers.Spec{}, err
	}
	if w.deps.Devices != nil && len(w.launch.Grants) > 0 {
		mounts, env := w.deps.Devices(w.launch.Task, w.launch.Attempt)
		spec.Mounts = append(spec.Mounts, mounts...)
		spec.Env = append(spec.Env, env...)
	}
	spec.Env = append(spec.Env, w.memory.Variables()...)
	gpushare.Set(&spec, w.rec, w.launch.Grants, w.deps.GPUs.Capacity)
	w.mps.Share(&spec, !w.memory.Bursts())
	w.joinSuite(&spec)
	return spec, nil
}

// jobSpec returns the spec of an attempt that is a pod of a Job. The Job itself has all
// other settings.
func (w *worker) jobSpec(mode containers.Attach) containers.Spec {
	grant := w.mostGranted()
	return containers.Spec{
		Name: w.containerName(), Image: w.rec.Submit.Image, Job: &w.rec.Job.JobID,
		Labels: label.Describe(w.rec, w.launch, mode), Identity: w.identity(), GPUs: w.uuids(), GPUMemory: int64(grant), Attach: mode,
		Env: []string{
			"CARMA_TASK=" + w.launch.Task.String(), "CARMA_ATTEMPT=" + strconv.Itoa(w.launch.Attempt),
			"CARMA_GRANT_BYTES=" + strconv.FormatInt(int64(grant), 10),
		},
	}
}

// create makes the container, and fetches its image if that is missing. An
// empty ID without an error means that the task was stopped while the image was
// fetched.
func (w *worker) create(ctx context.Context, spec containers.Spec) (id string, err error) {
	by := w.deps.Puller.Of(int64(w.launch.Task))
	if !w.rec.Submit.Bare() && spec.Job == nil {
		_, err = w.deps.Engine.Retry(ctx, func() error { return w.deps.Puller.Check(ctx, w.rec.UID, spec.Image, by) })
		if denied := (*pull.DeniedError)(nil); errors.As(err, &denied) {
			return "", fmt.Errorf("%w: %w", containers.ErrInvalid, err)
		}
		if err != nil {
			return "", err
		}
	}
	defer func() {
		if err == nil {
			w.deps.Puller.Drop(int64(w.launch.Task))
		}
	}()
	_, err = w.deps.Engine.Retry(ctx, func() (err error) { id, err = w.deps.Driver.Create(ctx, spec); return err })
	if errors.Is(err, containers.ErrNotFound) && w.rec.Submit.Bare() {
		if err = w.deps.Host.MakeImage(ctx); err == nil {
			_, err = w.deps.Engine.Retry(ctx, func() (err error) { id, err = w.deps.Driver.Create(ctx, spec); return err })
		}
		return id, err
	}
	if !errors.Is(err, containers.ErrNotFound) || w.deps.Images.Policy(w.rec.Submit.Pull) == "never" {
		return id, err
	}
	// The task was accepted while the engine was down, or the image was removed
	// since.
	if err = w.fetch(ctx, spec.Image, by); err == nil {
		_, err = w.deps.Engine.Retry(ctx, func() (err error) { id, err = w.deps.Driver.Create(ctx, spec); return err })
		return id, err
	}
	if w.stopRequested() {
		return "", nil
	}
	return id, fmt.Errorf("%w: image %s is not on this machine and cannot be pulled: %w", containers.ErrInvalid, spec.Image, err)
}

// onCreated records that the container exists. A start that takes long reports it later.
func (w *worker) onCreated() {
	if !w.startsLong() {
		w.onAccepted()
	}
}

// onAccepted reports to the mapper that the next launch may be given to the engine.
func (w *worker) onAccepted() {
	ev := model.LaunchAccepted{At: w.deps.Clock.Now(), Task: w.launch.Task, Attempt: w.launch.Attempt}
	w.deps.Loop.Post(&loop.Change{Keep: true, Events: func(units.Instant) ([]model.Event, []*record.Record, error) {
		if w.deps.Loop.State().Options().LaunchesAtOnce == 0 {
			return nil, nil, nil // no launch waits for this report
		}
		return []model.Event{ev}, nil, nil
	}})
}

// fetch fetches an image, unless the task is stopped meanwhile.
func (w *worker) fetch(ctx context.Context, image string, by pull.Credentials) error {
	w.onAccepted() // the fetch may take long
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := w.deps.Engine.Retry(ctx, func() error { return w.deps.Puller.Pull(ctx, w.rec.UID, image, by) })
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-w.stop.asked:
		cancel()
		return <-done
	}
}

// joinSuite gives an attempt its part of its suite, and stores the files for its container.
func (w *worker) joinSuite(spec *containers.Spec) {
	if w.rec.Group == "" {
		return
	}
	spec.Hosted, w.files = w.deps.Helpers.Join(helpers.Owner{UID: w.rec.UID}, w.rec.Group, w.rec.Submit.Part, spec.User)
}

// nearCPUs returns the processors at the NUMA node of an attempt's GPUs. It returns "" if
// the attempt has no GPU, its GPUs are at several nodes, or the node is unknown.
func (w *worker) nearCPUs() string {
	socket := ""
	for i, grant := range w.launch.Grants {
		at := w.deps.GPUs.Infos()[grant.GPU].Socket
		if i > 0 && at != socket || at == "" {
			return ""
		}
		socket = at
	}
	if socket == "" {
		return ""
	}
	return w.deps.Memory.NearCPUs(socket)
}
