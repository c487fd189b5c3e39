package runner

import (
	"context"
	"sync"
	"testing"
	"time"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/runner/api"
)

// fetching is an engine whose starts wait for an image that never arrives.
type fetching struct {
	*containerstest.Fake
	once    sync.Once
	aborted chan struct{}
}

func (f *fetching) Start(ctx context.Context, _ string) error {
	select {
	case <-f.aborted:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *fetching) Abort(context.Context, string) error {
	f.once.Do(func() { close(f.aborted) })
	return nil
}

func (f *fetching) Wait(context.Context, string) (containers.Exit, error) {
	return containers.Exit{Code: 137, Finished: time.Now()}, nil
}

// TestStopWhileStarting checks that a stop does not wait for a start if the driver's starts may
// take long.
func TestStopWhileStarting(t *testing.T) {
	f := &fetching{aborted: make(chan struct{})}
	g := newRig(t, func(g *rig) { f.Fake = g.engine; g.driver = f })
	g.script("far", printing(0))
	ref := g.run(api.Submit{Image: "far"})
	g.until(ref, "launching", func(t api.Task) bool { return t.Phase == "launching" })
	if _, err := g.api.Stop(g.ctx(), ref, api.StopRequest{}); err != nil {
		t.Fatal(err)
	}
	task := g.until(ref, "cancelled", func(t api.Task) bool { return t.Phase == "cancelled" })
	if a := task.Attempts[0]; a.Outcome != "stopped" {
		t.Errorf("%+v", a)
	}
}
