package helpers

import (
	"context"
	"fmt"
	"slices"
	"time"

	"carma/containers"
	"carma/runner/api"
)

// conditions describes the states of helpers that can be awaited, for people.
var conditions = map[string]string{"started": "has started", "healthy": "is healthy", "ok": "has ended well"}

// waitFor waits until all conditions of a list hold.
func (a *ascent) waitFor(ctx context.Context, who string, list []api.HelperWait) error {
	for _, w := range list {
		select {
		case <-a.started[w.Helper]:
		case <-ctx.Done():
			return ctx.Err()
		}
		if w.Condition == "started" {
			continue
		}
		a.step(fmt.Sprintf("%s: waiting until helper %s %s", who, w.Helper, conditions[w.Condition]))
		h := a.kept.Suite.Helpers[slices.IndexFunc(a.kept.Suite.Helpers, func(h api.Helper) bool { return h.Name == w.Helper })]
		for n := range max(1, h.Replicas) {
			if err := a.until(ctx, a.containerName(a.kept, w.Helper, n+1), w); err != nil {
				return err
			}
		}
	}
	return nil
}

// until waits for one container.
func (a *ascent) until(ctx context.Context, name string, w api.HelperWait) error {
	for {
		var l containers.Look
		err := try(ctx, func() (err error) { l, err = a.Host.Look(ctx, name); return err })
		if err != nil {
			return err
		}
		if so, err := holds(&l, w); so || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
}

// holds reports whether a condition is met. The error is the reason why it never will be.
func holds(l *containers.Look, w api.HelperWait) (bool, error) {
	ended := l.State == containers.StateExited
	switch {
	case w.Condition == "ok" && ended && l.Code == 0 && l.Error == "":
		return true, nil
	case ended:
		return false, fmt.Errorf("helper %s has ended with exit code %d; `carma suite logs` shows its output", w.Helper, l.Code)
	case w.Condition == "ok":
		return false, nil
	case l.Health == containers.HealthGood:
		return true, nil
	case l.Health == containers.HealthUnhealthy:
		return false, fmt.Errorf("helper %s is not healthy; `carma suite logs` shows its output", w.Helper)
	case l.Health == "":
		return false, fmt.Errorf("helper %s has no check of its health, so it cannot be waited for; give it a healthcheck, or wait with service_started", w.Helper)
	}
	return false, nil
}
