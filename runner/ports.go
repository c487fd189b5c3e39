package runner

import (
	"context"

	"carma/containers"
	"carma/containers/option"
	"carma/runner/engine"
	"carma/runner/ports"
)

// openPorts opens the container's ports if its engine does not do it, and records their
// addresses. closed removes the addresses.
func (w *worker) openPorts(ctx context.Context, id string) (closed func()) {
	key := w.key()
	publisher, can := engine.As[containers.Publisher](w.Driver)
	if len(w.rec.Submit.Ports) == 0 || !can {
		return func() {}
	}
	var open []option.Port
	_, err := w.engine.Retry(ctx, func() error {
		return engine.Within(ctx, engine.AttachedLimit, "look for ports", func(ctx context.Context) (err error) { open, err = publisher.Ports(ctx, id); return err })
	})
	if err != nil && ctx.Err() == nil {
		w.Log.Warn().Err(err).Int64("task", int64(w.launch.Task)).Msg("the ports of a task cannot be reached")
	}
	w.ports.Set(key, ports.ViewOpen(open))
	return func() { w.ports.Set(key, nil) }
}
