package attempt

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"carma/containers"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/containerfiles"
	"carma/runner/gpushare"
	"carma/runner/helpers"
	"carma/runner/label"
	"carma/runner/loop"
	"carma/runner/pull"
	"carma/runner/record"
	"carma/runner/rights"
)

// builder builds the specification of an attempt's container.
type builder struct{ *core }

// spec returns the specification of the attempt's container, and the files of its suite for
// the container. It is only needed to make a container; an existing container is adopted
// without it.
func (b *builder) spec() (spec containers.Spec, files []api.SuiteFile, err error) {
	mode, nodes, err := b.attachment()
	if err != nil {
		return spec, nil, err
	}
	if b.rec.Job != nil {
		return b.jobSpec(mode), nil, nil
	}
	sub := b.rec.Submit
	options, err := b.deps.Settings.Options(b.rec)
	if err != nil {
		return spec, nil, fmt.Errorf("%w: %w", containers.ErrInvalid, err)
	}
	grant := b.mostGranted()
	spec = containers.Spec{
		Name:             b.containerName(),
		Image:            sub.Image,
		Labels:           label.Describe(b.rec, b.launch, mode),
		Identity:         b.identity(),
		Entrypoint:       sub.Entrypoint,
		Command:          sub.Command,
		ContainerOptions: options,
		GPUs:             b.uuids(),
		Attach:           mode,
		Nodes:            nodes,
		Env: []string{
			"CARMA_TASK=" + b.launch.Task.String(),
			"CARMA_ATTEMPT=" + strconv.Itoa(b.launch.Attempt),
			"CARMA_GRANT_BYTES=" + strconv.FormatInt(int64(grant), 10),
		},
		NoNewPrivileges: true,
		LogBytes:        b.deps.Logs.Limits().Attempt,
		StopGrace:       b.deps.Settings.Grace(b.rec),
		GPUMemory:       int64(grant),
		Park:            b.memory.Limited(),
	}
	b.deps.Settings.Bounds().Bound(&spec, sub, b.launch.Host)
	if b.deps.NearCPUs {
		spec.CPUSet = b.nearCPUs()
	}
	spec.User = sub.User
	if sub.BatchSize > 0 { // the batch size of the estimate, so that the program can train with it
		spec.Env = append(spec.Env, "CARMA_BATCH_SIZE="+strconv.Itoa(sub.BatchSize))
	}
	if b.rec.Says != nil && b.rec.Says.Unbuffered {
		spec.Env = append(spec.Env, record.Unbuffered+"=1")
	}
	spec.Env = append(spec.Env, sub.Env...)
	spec.Namespace, spec.Account = sub.Namespace, sub.ServiceAccount
	if b.rec.UID != 0 && !rights.OfCluster(b.rec.UID) {
		spec.User = fmt.Sprintf("%d:%d", b.rec.UID, b.rec.GID)
	}
	spec.Mounts = containerfiles.Mounts(b.rec)
	if err := b.mountVacate(&spec); err != nil {
		return spec, nil, err
	}
	if b.deps.Devices != nil && len(b.launch.Grants) > 0 {
		mounts, env := b.deps.Devices(b.launch.Task, b.launch.Attempt)
		spec.Mounts = append(spec.Mounts, mounts...)
		spec.Env = append(spec.Env, env...)
	}
	spec.Env = append(spec.Env, b.memory.Variables()...)
	gpushare.Set(&spec, b.rec, b.launch.Grants, b.deps.GPUs.Capacity)
	b.mps.Share(&spec, !b.memory.Bursts())
	files = b.joinSuite(&spec)
	return spec, files, nil
}

// jobSpec returns the spec of an attempt that is a pod of a Job. The Job itself has all
// other settings.
func (b *builder) jobSpec(mode containers.Attach) containers.Spec {
	grant := b.mostGranted()
	return containers.Spec{
		Name: b.containerName(), Image: b.rec.Submit.Image, Job: &b.rec.Job.JobID,
		Labels: label.Describe(b.rec, b.launch, mode), Identity: b.identity(), GPUs: b.uuids(), GPUMemory: int64(grant), Attach: mode,
		Env: []string{
			"CARMA_TASK=" + b.launch.Task.String(), "CARMA_ATTEMPT=" + strconv.Itoa(b.launch.Attempt),
			"CARMA_GRANT_BYTES=" + strconv.FormatInt(int64(grant), 10),
		},
	}
}

// create makes the container, and fetches its image if that is missing. An
// empty ID without an error means that the task was stopped while the image was
// fetched.
func (a *Attempt) create(ctx context.Context, spec containers.Spec) (id string, err error) {
	by := a.deps.Puller.Of(int64(a.launch.Task))
	if !a.rec.Submit.Bare() && spec.Job == nil {
		_, err = a.deps.Engine.Retry(ctx, func() error { return a.deps.Puller.Check(ctx, a.rec.UID, spec.Image, by) })
		if denied := (*pull.DeniedError)(nil); errors.As(err, &denied) {
			return "", fmt.Errorf("%w: %w", containers.ErrInvalid, err)
		}
		if err != nil {
			return "", err
		}
	}
	defer func() {
		if err == nil {
			a.deps.Puller.Drop(int64(a.launch.Task))
		}
	}()
	_, err = a.deps.Engine.Retry(ctx, func() (err error) { id, err = a.deps.Driver.Create(ctx, spec); return err })
	if errors.Is(err, containers.ErrNotFound) && a.rec.Submit.Bare() {
		if err = a.deps.Host.MakeImage(ctx); err == nil {
			_, err = a.deps.Engine.Retry(ctx, func() (err error) { id, err = a.deps.Driver.Create(ctx, spec); return err })
		}
		return id, err
	}
	if !errors.Is(err, containers.ErrNotFound) || a.deps.Images.Policy(a.rec.Submit.Pull) == "never" {
		return id, err
	}
	// The task was accepted while the engine was down, or the image has been removed
	// since.
	if err = a.fetch(ctx, spec.Image, by); err == nil {
		_, err = a.deps.Engine.Retry(ctx, func() (err error) { id, err = a.deps.Driver.Create(ctx, spec); return err })
		return id, err
	}
	if a.stopRequested() {
		return "", nil
	}
	return id, fmt.Errorf("%w: image %s is not on this machine and cannot be pulled: %w", containers.ErrInvalid, spec.Image, err)
}

// onCreated records that the container exists. A start that takes long reports it later.
func (a *Attempt) onCreated() {
	if !a.startsLong() {
		a.onAccepted()
	}
}

// onAccepted reports to the mapper that the next launch may be given to the engine.
func (a *Attempt) onAccepted() {
	ev := model.LaunchAccepted{At: a.deps.Clock.Now(), Task: a.launch.Task, Attempt: a.launch.Attempt}
	a.deps.Loop.Post(&loop.Change{Keep: true, Events: func(units.Instant) ([]model.Event, []*record.Record, error) {
		if a.deps.Loop.State().Options().LaunchesAtOnce == 0 {
			return nil, nil, nil // no launch waits for this report
		}
		return []model.Event{ev}, nil, nil
	}})
}

// fetch fetches an image, unless the task is stopped meanwhile.
func (a *Attempt) fetch(ctx context.Context, image string, by pull.Credentials) error {
	a.onAccepted() // the fetch may take long
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := a.deps.Engine.Retry(ctx, func() error { return a.deps.Puller.Pull(ctx, a.rec.UID, image, by) })
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-a.stop.asked:
		cancel()
		return <-done
	}
}

// joinSuite gives an attempt its part of its suite, and returns the files for its container.
func (b *builder) joinSuite(spec *containers.Spec) (files []api.SuiteFile) {
	if b.rec.Group == "" {
		return nil
	}
	spec.Hosted, files = b.deps.Helpers.Join(helpers.Owner{UID: b.rec.UID}, b.rec.Group, b.rec.Submit.Part, spec.User)
	return files
}

// nearCPUs returns the processors at the NUMA node of an attempt's GPUs. It returns "" if
// the attempt has no GPU, its GPUs are at several nodes, or the node is unknown.
func (b *builder) nearCPUs() string {
	socket := ""
	for i, grant := range b.launch.Grants {
		at := b.deps.GPUs.Infos()[grant.GPU].Socket
		if i > 0 && at != socket || at == "" {
			return ""
		}
		socket = at
	}
	if socket == "" {
		return ""
	}
	return b.deps.Memory.NearCPUs(socket)
}
