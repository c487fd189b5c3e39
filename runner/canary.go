package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"carma/containers"
	"carma/containers/bare"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/engine"
	"carma/runner/label"
	"carma/runner/loop"
	"carma/runner/record"
)

// The canary is a container of carma's own. It has no GPU, no mount and no user of this
// machine, so that nothing but the engine can keep it from starting. The mapper asks
// for it when starts of tasks fail for an unknown reason.

// Limits of the canary's container.
const (
	canaryUser      = "65534:65534" // nobody
	canaryMemory    = 64 << 20
	canaryProcesses = 64
	// canaryRemoved limits the removal of the canary after the daemon was asked to stop.
	canaryRemoved = 10 * time.Second
)

// startCanaryIfDue starts the canary if the mapper asks for it and none runs. Only the
// loop calls it.
func (r *Runner) startCanaryIfDue() {
	if r.canaryRuns || !r.loop.State().CanaryDue() {
		return
	}
	r.canaryRuns = true
	r.side.Go(func() {
		outcome, fault := r.tryCanary(r.work)
		if r.work.Err() != nil {
			return // the next daemon tries it again
		}
		r.loop.Post(&loop.Change{Keep: true, Events: func(now units.Instant) ([]model.Event, []*record.Record, error) {
			r.canaryRuns = false
			return []model.Event{model.CanaryEnded{At: now, Outcome: outcome, Fault: fault}}, nil, nil
		}})
	})
}

// tryCanary runs the canary and judges its outcome.
func (r *Runner) tryCanary(ctx context.Context) (model.CanaryOutcome, *model.Fault) {
	err := r.runCanary(ctx)
	if err == nil {
		return model.CanaryStarted, nil
	}
	if errors.Is(err, errNoCanary) {
		r.Log.Debug().Err(err).Msg("no canary can be started; complaints of two users blame the engine")
		return model.CanaryMissing, nil
	}
	f := containers.StartFaultOf(err)
	if f.Scope == containers.ScopeTask {
		r.Log.Warn().Err(err).Msg("the engine refuses the canary, which says nothing about the tasks")
		return model.CanaryMissing, nil
	}
	r.Log.Error().Err(err).Msg("the canary does not start")
	return model.CanaryFailed, &model.Fault{
		Scope: model.ScopeEngine, Code: f.Code, Cause: "carma's own test container does not start: " + f.Cause, Remedy: f.Remedy,
	}
}

// errNoCanary says that no canary can be started here, or that its own program fails.
var errNoCanary = errors.New("no canary")

// runCanary makes, starts and removes the canary. It returns nil if the engine has
// started it.
func (r *Runner) runCanary(ctx context.Context) (err error) {
	if r.opt.Init == "" {
		return fmt.Errorf("%w: carma-init, its program, is not beside carma", errNoCanary)
	}
	if _, ok := engine.As[containers.Importer](r.Driver); !ok {
		return fmt.Errorf("%w: driver %s cannot make its image", errNoCanary, r.Driver.Name())
	}
	name, over := r.trials.Name("canary")
	defer over()
	spec := r.canarySpec(name)
	id, err := r.createCanary(ctx, spec)
	if err != nil {
		return err
	}
	defer r.removeCanary(ctx, id, name)
	if _, err := r.engine.Retry(ctx, func() error { return r.Driver.Start(ctx, id) }); err != nil {
		return err
	}
	var exit containers.Exit
	if _, err := r.engine.Retry(ctx, func() (err error) { exit, err = r.Driver.Wait(ctx, id); return err }); err != nil {
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

func (r *Runner) canarySpec(name string) containers.Spec {
	return containers.Spec{
		Name: name, Image: bare.CanaryImage,
		Labels:     map[string]string{label.Name: "canary"},
		Identity:   map[string]string{label.Instance: r.instance, label.Task: "0", label.Attempt: "1"},
		Entrypoint: []string{bare.CanaryProgram}, Command: []string{"true"},
		User: canaryUser, NoNewPrivileges: true,
		Memory: canaryMemory, CPUs: 1, ContainerOptions: containers.ContainerOptions{Pids: canaryProcesses},
	}
}

// createCanary makes the canary's container, and its image if that is missing.
func (r *Runner) createCanary(ctx context.Context, spec containers.Spec) (id string, err error) {
	create := func() (err error) { id, err = r.Driver.Create(ctx, spec); return err }
	if _, err = r.engine.Retry(ctx, create); !errors.Is(err, containers.ErrNotFound) {
		return id, err
	}
	program, err := os.ReadFile(r.opt.Init)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNoCanary, err)
	}
	tar, err := bare.CanaryArchive(program)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNoCanary, err)
	}
	if err := r.engine.Import(ctx, tar); err != nil {
		if containers.MachineFault(err.Error()) {
			return "", err
		}
		return "", fmt.Errorf("%w: its image cannot be made: %w", errNoCanary, err)
	}
	_, err = r.engine.Retry(ctx, create)
	return id, err
}

// removeCanary removes the canary's container. If that fails, the next daemon removes the
// container.
func (r *Runner) removeCanary(ctx context.Context, id, name string) {
	remove := func(ctx context.Context) error { return r.Driver.Remove(ctx, id) }
	_, err := r.engine.Retry(ctx, func() error { return remove(ctx) })
	if ctx.Err() != nil {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), canaryRemoved)
		defer cancel()
		err = remove(end)
	}
	if err != nil {
		r.Log.Warn().Err(err).Str("container", name).Msg("the canary could not be removed; it will be at the next start")
	}
}
