// Package probing runs the first training steps of tasks whose memory is not known, one task at
// a time, and queues each with the estimate for the network that it trains.
package probing

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
	"carma/runner/clock"
	"carma/runner/containerfiles"
	"carma/runner/engine"
	"carma/runner/hostenv"
	"carma/runner/label"
	"carma/runner/loop"
	"carma/runner/record"

	"github.com/rs/zerolog"
)

// Settings configures the probes of tasks before they are first mapped.
type Settings struct {
	// When is [admission.ProbeAsked], [admission.ProbeUnknown] or [admission.ProbeNever].
	When string
	// Limits bound one probe. Only one probe runs at a time, because it takes processors
	// from the data loaders of running tasks.
	Limits probe.Limits
	// Run, if not nil, is called in place of probe.Run.
	Run func(context.Context, containers.Driver, probe.Request) (*models.Config, error)
}

// Config holds the parts that a Prober works with.
type Config struct {
	Driver    containers.Driver
	Engine    *engine.Health
	Loop      *loop.Loop
	Records   *record.Store
	Admission *admission.Controller
	Places    *containerfiles.Places
	Host      *hostenv.Environment
	Clock     *clock.Clock
	Log       zerolog.Logger
	Instance  string // labels the containers of this data folder
	DataDir   string
	Work      context.Context                                                                 // ends when the daemon stops
	Side      *sync.WaitGroup                                                                 // of the goroutines that run until then
	Run       func(context.Context, containers.Driver, probe.Request) (*models.Config, error) // see [Settings]
	Limits    func() probe.Limits                                                             // in force
}

// Prober holds the probes that wait or run.
type Prober struct {
	c    Config
	turn chan struct{} // holds one token while a probe runs

	mu    sync.Mutex
	tasks map[model.TaskID]*running
}

// running is the probe of one task.
type running struct {
	end   context.CancelFunc
	since time.Time // when the probe began, or zero while it waits for its turn
}

// New returns a prober without probes.
func New(c Config) *Prober {
	if c.Run == nil {
		c.Run = probe.Run
	}
	return &Prober{c: c, turn: make(chan struct{}, 1), tasks: map[model.TaskID]*running{}}
}

// StartIfDue starts the probe of a task that has no memory estimate yet, once the task
// has no unmet dependency, because its program may read what the other tasks write. Only
// the loop calls it.
func (p *Prober) StartIfDue(rec *record.Record) {
	if t, ok := p.c.Loop.State().Task(rec.ID()); ok && t.Phase == model.Estimating && p.c.Loop.State().Ready(rec.ID()) {
		p.start(rec)
	}
}

// start starts the probe of a task, unless it has begun. Only the loop
// calls it.
func (p *Prober) start(rec *record.Record) {
	id := rec.ID()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tasks[id] != nil {
		return
	}
	ctx, end := context.WithCancel(p.c.Work)
	one := &running{end: end}
	p.tasks[id] = one
	p.c.Side.Go(func() {
		defer end()
		p.probe(ctx, one, rec)
		p.mu.Lock()
		delete(p.tasks, id)
		p.mu.Unlock()
	})
}

// End ends the probe of a task, if it has one.
func (p *Prober) End(id model.TaskID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if one := p.tasks[id]; one != nil {
		one.end()
	}
}

// probe finds the network that a task trains, and queues the task with the estimate for
// that network. If the probe fails, the estimate is made without the network and says
// why.
func (p *Prober) probe(ctx context.Context, one *running, rec *record.Record) {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return
	}
	p.mu.Lock()
	one.since = p.c.Clock.Time()
	p.mu.Unlock()
	network, err := p.findNetwork(ctx, rec)
	if ctx.Err() != nil {
		return // cancelled, or the daemon stops and the next daemon probes again
	}
	est, expected, estErr := p.c.Admission.Predict(ctx, rec, network)
	if estErr != nil {
		est = estimator.Estimate{WholeGPU: true, Method: estimator.WholeGPUs, Detail: estErr.Error()}
	}
	if err != nil {
		p.c.Log.Info().Int64("task", int64(rec.ID())).Str("reason", err.Error()).Msg("the probe found nothing")
		est.Detail = fmt.Sprintf("the probe found nothing (%v); %s", err, est.Detail)
	}
	_ = p.c.Loop.Do(ctx, &loop.Change{Keep: true, Events: func(now units.Instant) ([]model.Event, []*record.Record, error) {
		return p.probed(now, rec.ID(), est, expected)
	}}) // an error means that the daemon stops
}

// probed returns the event that queues a task after its probe. Only the loop
// calls it.
func (p *Prober) probed(now units.Instant, id model.TaskID, est estimator.Estimate, expected model.Expected) ([]model.Event, []*record.Record, error) {
	rec, _ := p.c.Records.Get(id)
	if rec == nil || rec.Task.Phase != model.Estimating {
		return nil, nil, nil
	}
	c := *rec
	c.Detail = est.Detail
	return []model.Event{model.Estimated{At: now, Task: id, Estimate: admission.Booking(est), Expected: expected}}, []*record.Record{&c}, nil
}

// findNetwork runs the first steps of a task's program on the CPU.
func (p *Prober) findNetwork(ctx context.Context, rec *record.Record) (*models.Config, error) {
	name := fmt.Sprintf("carma-%s-%d-probe", p.c.Instance, rec.ID())
	labels := map[string]string{label.Instance: p.c.Instance, label.Task: rec.ID().String()}
	if err := p.clearProbes(ctx, labels); err != nil {
		return nil, err
	}
	sub := rec.Submit
	request := probe.Request{
		Name: name, Labels: labels, Image: sub.Image, Entrypoint: sub.Entrypoint, Command: sub.Command,
		Env: sub.Env, WorkDir: sub.WorkDir, ShmSize: sub.ShmSize, GPUs: sub.GPUs,
		Folder: filepath.Join(p.c.DataDir, "probe"), Limits: p.c.Limits(),
	}
	request.User = sub.User
	if rec.UID != 0 {
		request.User = fmt.Sprintf("%d:%d", rec.UID, rec.GID)
	}
	for _, m := range sub.Mounts {
		request.Mounts = append(request.Mounts, containers.Mount{Source: m.Source, Target: m.Target, ReadOnly: true})
	}
	host, placed, err := p.c.Places.Place(ctx, rec, name, request.Mounts, containerfiles.Extra{})
	defer placed()
	if err != nil {
		return nil, err
	}
	if sub.Bare() {
		if err := p.c.Host.FurnishProbe(ctx, rec, &request, host); err != nil {
			return nil, err
		}
	}
	var network *models.Config
	_, err = p.c.Engine.Retry(ctx, func() (err error) { network, err = p.c.Run(ctx, p.c.Driver, request); return err })
	return network, err
}

// clearProbes removes the remains of a task's probe after a daemon was killed.
func (p *Prober) clearProbes(ctx context.Context, labels map[string]string) error {
	_, err := p.c.Engine.Retry(ctx, func() error {
		found, err := p.c.Driver.List(ctx, labels)
		if err != nil {
			return err
		}
		for _, c := range found {
			if c.Labels[probe.Label] == "" {
				continue
			}
			if err := p.c.Driver.Remove(ctx, c.ID); err != nil && !errors.Is(err, containers.ErrNotFound) {
				return err
			}
		}
		return nil
	})
	return err
}

// Doing describes what the probe of a task does now, or returns "" if the task has no
// probe.
func (p *Prober) Doing(id model.TaskID) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch one := p.tasks[id]; {
	case one == nil:
		return ""
	case one.since.IsZero():
		return "its probe waits until another task's is done"
	default:
		return fmt.Sprintf("its first steps run on the CPU, to see what memory it needs, for %s now", max(0, p.c.Clock.Time().Sub(one.since)).Round(time.Second))
	}
}
