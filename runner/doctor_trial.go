package runner

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"

	"carma/containers"
)

// trials are the containers in which the daemon tries something, for carma doctor or as
// the engine's canary. They belong to no attempt: their labels name task 0, which does
// not exist.
type trials struct {
	mu    sync.Mutex
	names map[string]bool // of this daemon's, until they are removed
}

// trial names the container of a trial and keeps it from the sweep until over is called.
func (r *Runner) trial() (name string, over func()) { return r.trialOf("doctor") }

// trialOf does what trial does for a container with another purpose.
func (r *Runner) trialOf(purpose string) (name string, over func()) {
	name = fmt.Sprintf("carma-%s-%s-%s", r.instance, purpose, strings.ToLower(rand.Text()[:8]))
	r.trials.mu.Lock()
	defer r.trials.mu.Unlock()
	if r.trials.names == nil {
		r.trials.names = map[string]bool{}
	}
	r.trials.names[name] = true
	return name, func() {
		r.trials.mu.Lock()
		defer r.trials.mu.Unlock()
		delete(r.trials.names, name)
	}
}

func (t *trials) has(name string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.names[name]
}

// sweepTrial removes the container of a trial that a killed daemon left.
func (r *Runner) sweepTrial(ctx context.Context, c containers.Container) {
	if r.trials.has(c.Name) {
		return
	}
	r.thaw(ctx, c.ID, c.Name)
	r.clearLimits(ctx, c.ID)
	if _, err := r.engine.Retry(ctx, func() error { return r.Driver.Remove(ctx, c.ID) }); err != nil && ctx.Err() == nil {
		r.Log.Warn().Err(err).Str("container", c.Name).Msg("the container of a trial could not be removed")
	}
}
