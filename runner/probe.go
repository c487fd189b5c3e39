package runner

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"carma/configs/models"
	"carma/containers"
	"carma/estimator"
	"carma/estimator/probe"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/admission"
	"carma/runner/containerfiles"
	"carma/runner/label"
	"carma/runner/loop"
	"carma/runner/record"
)

// Probing configures the probes of tasks before they are first mapped.
type Probing struct {
	// When is [admission.ProbeAsked], [admission.ProbeUnknown] or [admission.ProbeNever].
	When string
	// Limits bound one probe. Only one probe runs at a time, because it takes processors
	// from the data loaders of running tasks.
	Limits probe.Limits
	// Run, if not nil, is called in place of probe.Run.
	Run func(context.Context, containers.Driver, probe.Request) (*models.Config, error)
}

// probers holds the probes that wait or run.
type probers struct {
	turn chan struct{} // holds one token while a probe runs

	mu    sync.Mutex
	tasks map[model.TaskID]*prober
}

// prober is the probe of one task.
type prober struct {
	end     context.CancelFunc
	running time.Time // when the probe began, or zero while it waits for its turn
}

func newProbers() probers {
	return probers{turn: make(chan struct{}, 1), tasks: map[model.TaskID]*prober{}}
}

// probeIfDue starts the probe of a task that has no memory estimate yet, once the task
// has no unmet dependency, because its program may read what the other tasks write. Only
// the loop calls it.
func (r *Runner) probeIfDue(rec *record.Record) {
	if t, ok := r.loop.State().Task(rec.ID()); ok && t.Phase == model.Estimating && r.loop.State().Ready(rec.ID()) {
		r.startProbe(rec)
	}
}

// startProbe starts the probe of a task, unless it has begun. Only the loop
// calls it.
func (r *Runner) startProbe(rec *record.Record) {
	id := rec.ID()
	r.probers.mu.Lock()
	defer r.probers.mu.Unlock()
	if r.probers.tasks[id] != nil {
		return
	}
	ctx, end := context.WithCancel(r.work)
	p := &prober{end: end}
	r.probers.tasks[id] = p
	r.side.Go(func() {
		defer end()
		r.probe(ctx, p, rec)
		r.probers.mu.Lock()
		delete(r.probers.tasks, id)
		r.probers.mu.Unlock()
	})
}

// endProbe ends the probe of a task, if it has one.
func (r *Runner) endProbe(id model.TaskID) {
	r.probers.mu.Lock()
	defer r.probers.mu.Unlock()
	if p := r.probers.tasks[id]; p != nil {
		p.end()
	}
}

// probe finds the network that a task trains, and queues the task with the estimate for
// that network. If the probe fails, the estimate is made without the network and says
// why.
func (r *Runner) probe(ctx context.Context, p *prober, rec *record.Record) {
	select {
	case r.probers.turn <- struct{}{}:
		defer func() { <-r.probers.turn }()
	case <-ctx.Done():
		return
	}
	r.probers.mu.Lock()
	p.running = r.Clock.Time()
	r.probers.mu.Unlock()
	network, err := r.findNetwork(ctx, rec)
	if ctx.Err() != nil {
		return // cancelled, or the daemon stops and the next daemon probes again
	}
	est, expected, estErr := r.admission.Predict(ctx, rec, network)
	if estErr != nil {
		est = estimator.Estimate{WholeGPU: true, Method: estimator.WholeGPUs, Detail: estErr.Error()}
	}
	if err != nil {
		r.Log.Info().Int64("task", int64(rec.ID())).Str("reason", err.Error()).Msg("the probe found nothing")
		est.Detail = fmt.Sprintf("the probe found nothing (%v); %s", err, est.Detail)
	}
	_ = r.loop.Do(ctx, &loop.Change{Keep: true, Events: func(now units.Instant) ([]model.Event, []*record.Record, error) {
		return r.probed(now, rec.ID(), est, expected)
	}}) // an error means that the daemon stops
}

// probed returns the event that queues a task after its probe. Only the loop
// calls it.
func (r *Runner) probed(now units.Instant, id model.TaskID, est estimator.Estimate, expected model.Expected) ([]model.Event, []*record.Record, error) {
	rec, _ := r.records.Get(id)
	if rec == nil || rec.Task.Phase != model.Estimating {
		return nil, nil, nil
	}
	c := *rec
	c.Detail = est.Detail
	return []model.Event{model.Estimated{At: now, Task: id, Estimate: admission.Booking(est), Expected: expected}}, []*record.Record{&c}, nil
}

// findNetwork runs the first steps of a task's program on the CPU.
func (r *Runner) findNetwork(ctx context.Context, rec *record.Record) (*models.Config, error) {
	name := fmt.Sprintf("carma-%s-%d-probe", r.instance, rec.ID())
	labels := map[string]string{label.Instance: r.instance, label.Task: rec.ID().String()}
	if err := r.clearProbes(ctx, labels); err != nil {
		return nil, err
	}
	sub := rec.Submit
	request := probe.Request{
		Name: name, Labels: labels, Image: sub.Image, Entrypoint: sub.Entrypoint, Command: sub.Command,
		Env: sub.Env, WorkDir: sub.WorkDir, ShmSize: sub.ShmSize, GPUs: sub.GPUs,
		Folder: filepath.Join(r.opt.DataDir, "probe"), Limits: r.live().Probing.Limits,
	}
	request.User = sub.User
	if rec.UID != 0 {
		request.User = fmt.Sprintf("%d:%d", rec.UID, rec.GID)
	}
	for _, m := range sub.Mounts {
		request.Mounts = append(request.Mounts, containers.Mount{Source: m.Source, Target: m.Target, ReadOnly: true})
	}
	host, placed, err := r.places.Place(ctx, rec, name, request.Mounts, containerfiles.Extra{})
	defer placed()
	if err != nil {
		return nil, err
	}
	if sub.Bare() {
		if err := r.host.FurnishProbe(ctx, rec, &request, host); err != nil {
			return nil, err
		}
	}
	run := r.opt.Probing.Run
	if run == nil {
		run = probe.Run
	}
	var network *models.Config
	_, err = r.engine.Retry(ctx, func() (err error) { network, err = run(ctx, r.Driver, request); return err })
	return network, err
}

// clearProbes removes the remains of a task's probe after a daemon was killed.
func (r *Runner) clearProbes(ctx context.Context, labels map[string]string) error {
	_, err := r.engine.Retry(ctx, func() error {
		found, err := r.Driver.List(ctx, labels)
		if err != nil {
			return err
		}
		for _, c := range found {
			if c.Labels[probe.Label] == "" {
				continue
			}
			if err := r.Driver.Remove(ctx, c.ID); err != nil && !errors.Is(err, containers.ErrNotFound) {
				return err
			}
		}
		return nil
	})
	return err
}

// probing describes what the probe of a task does now, or returns "" if the task has no
// probe.
func (r *Runner) probing(id model.TaskID) string {
	r.probers.mu.Lock()
	defer r.probers.mu.Unlock()
	switch p := r.probers.tasks[id]; {
	case p == nil:
		return ""
	case p.running.IsZero():
		return "its probe waits until another task's is done"
	default:
		return fmt.Sprintf("its first steps run on the CPU, to see what memory it needs, for %s now", max(0, r.Clock.Time().Sub(p.running)).Round(time.Second))
	}
}
