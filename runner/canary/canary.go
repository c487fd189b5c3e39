// Package canary starts a container of carma's own when the mapper asks for it, because starts of
// tasks fail for an unknown reason: a canary that does not start shows that the engine is at fault.
package canary

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"carma/containers"
	"carma/containers/bare"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/engine"
	"carma/runner/label"
	"carma/runner/loop"
	"carma/runner/record"
	"carma/runner/trial"

	"github.com/rs/zerolog"
)

// The canary is a container of carma's own. It has no GPU, no mount and no user of this
// machine, so that nothing but the engine can keep it from starting. The mapper asks
// for it when starts of tasks fail for an unknown reason.

// Limits of the canary's container.
const (
	user      = "65534:65534" // nobody
	memory    = 64 << 20
	processes = 64
	// removeWithin limits the removal of the canary after the daemon was asked to stop.
	removeWithin = 10 * time.Second
)

// Config holds the parts that a Canary works with.
type Config struct {
	Program  string // the path of carma-init, its program, or empty if that is missing
	Instance string // labels the containers of this data folder
	Driver   containers.Driver
	Engine   *engine.Health
	Trials   *trial.Trials
	Loop     *loop.Loop
	Log      zerolog.Logger
}

// Canary runs at most one canary at a time.
type Canary struct {
	Config
	runs bool // only the loop uses it
}

// New returns a canary that does not run.
func New(c Config) *Canary { return &Canary{Config: c} }

// StartIfDue has a canary run in a goroutine of side, if the mapper asks for it and none runs.
// Only the loop calls it. ctx ends when the daemon stops; the next daemon tries it again.
func (c *Canary) StartIfDue(ctx context.Context, side *sync.WaitGroup) {
	if c.runs || !c.Loop.State().CanaryDue() {
		return
	}
	c.runs = true
	side.Go(func() {
		outcome, fault := c.try(ctx)
		if ctx.Err() != nil {
			return
		}
		c.Loop.Post(&loop.Change{Keep: true, Events: func(now units.Instant) ([]model.Event, []*record.Record, error) {
			c.runs = false
			return []model.Event{model.CanaryEnded{At: now, Outcome: outcome, Fault: fault}}, nil, nil
		}})
	})
}

// try runs the canary and judges its outcome.
func (c *Canary) try(ctx context.Context) (model.CanaryOutcome, *model.Fault) {
	err := c.run(ctx)
	if err == nil {
		return model.CanaryStarted, nil
	}
	if errors.Is(err, errNoCanary) {
		c.Log.Debug().Err(err).Msg("no canary can be started; complaints of two users blame the engine")
		return model.CanaryMissing, nil
	}
	f := containers.StartFaultOf(err)
	if f.Scope == containers.ScopeTask {
		c.Log.Warn().Err(err).Msg("the engine refuses the canary, which says nothing about the tasks")
		return model.CanaryMissing, nil
	}
	c.Log.Error().Err(err).Msg("the canary does not start")
	return model.CanaryFailed, &model.Fault{
		Scope: model.ScopeEngine, Code: f.Code, Cause: "carma's own test container does not start: " + f.Cause, Remedy: f.Remedy,
	}
}

// errNoCanary says that no canary can be started here, or that its own program fails.
var errNoCanary = errors.New("no canary")

// run makes, starts and removes the canary. It returns nil if the engine has
// started it.
func (c *Canary) run(ctx context.Context) (err error) {
	if c.Program == "" {
		return fmt.Errorf("%w: carma-init, its program, is not beside carma", errNoCanary)
	}
	if _, ok := engine.As[containers.Importer](c.Driver); !ok {
		return fmt.Errorf("%w: driver %s cannot make its image", errNoCanary, c.Driver.Name())
	}
	name, over := c.Trials.Name("canary")
	defer over()
	id, err := c.create(ctx, c.Spec(name))
	if err != nil {
		return err
	}
	defer c.remove(ctx, id, name)
	if _, err := c.Engine.Retry(ctx, func() error { return c.Driver.Start(ctx, id) }); err != nil {
		return err
	}
	var exit containers.Exit
	if _, err := c.Engine.Retry(ctx, func() (err error) { exit, err = c.Driver.Wait(ctx, id); return err }); err != nil {
		return fmt.Errorf("%w: its end cannot be seen: %w", errNoCanary, err)
	}
	switch {
	case exit.Error != "":
		return errors.New(exit.Error)
	case exit.Code != 0:
		return fmt.Errorf("%w: its program ended with exit code %d", errNoCanary, exit.Code)
	}
	return nil
}

// Spec returns the spec of a canary's container.
func (c *Canary) Spec(name string) containers.Spec {
	return containers.Spec{
		Name: name, Image: bare.CanaryImage,
		Labels:     map[string]string{label.Name: "canary"},
		Identity:   map[string]string{label.Instance: c.Instance, label.Task: "0", label.Attempt: "1"},
		Entrypoint: []string{bare.CanaryProgram}, Command: []string{"true"},
		User: user, NoNewPrivileges: true,
		Memory: memory, CPUs: 1, ContainerOptions: containers.ContainerOptions{Pids: processes},
	}
}

// create makes the canary's container, and its image if that is missing.
func (c *Canary) create(ctx context.Context, spec containers.Spec) (id string, err error) {
	create := func() (err error) { id, err = c.Driver.Create(ctx, spec); return err }
	if _, err = c.Engine.Retry(ctx, create); !errors.Is(err, containers.ErrNotFound) {
		return id, err
	}
	program, err := os.ReadFile(c.Program)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNoCanary, err)
	}
	tar, err := bare.CanaryArchive(program)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNoCanary, err)
	}
	if err := c.Engine.Import(ctx, tar); err != nil {
		if containers.MachineFault(err.Error()) {
			return "", err
		}
		return "", fmt.Errorf("%w: its image cannot be made: %w", errNoCanary, err)
	}
	_, err = c.Engine.Retry(ctx, create)
	return id, err
}

// remove removes the canary's container. If that fails, the next daemon removes the
// container.
func (c *Canary) remove(ctx context.Context, id, name string) {
	remove := func(ctx context.Context) error { return c.Driver.Remove(ctx, id) }
	_, err := c.Engine.Retry(ctx, func() error { return remove(ctx) })
	if ctx.Err() != nil {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeWithin)
		defer cancel()
		err = remove(end)
	}
	if err != nil {
		c.Log.Warn().Err(err).Str("container", name).Msg("the canary could not be removed; it will be at the next start")
	}
}
