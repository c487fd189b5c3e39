package runner

import (
	"context"
	"time"

	"carma/containers"
	"carma/runner/gpu"
)

// catchUpFor bounds the wait for samples from another machine. Its agent tells within a
// second what has changed. The watchdog stops an overuser after 3 s; until the end is
// told, it takes the room for needed.
const catchUpFor = 2 * time.Second

// catchUp has the mapper see what the GPUs showed when an attempt ran out of their
// memory, before it hears of that end: who took the memory decides who is charged.
// Samples of this machine are never late.
func (w *worker) catchUp(ctx context.Context, exit containers.Exit) {
	source, late := w.GPUs.(gpu.Lagging)
	if !late {
		return
	}
	ctx, enough := context.WithTimeout(ctx, catchUpFor)
	defer enough()
	source.CatchUp(ctx, w.uuids(), exit.Finished)
	ctx, enough = context.WithTimeout(context.WithoutCancel(ctx), catchUpFor)
	defer enough()
	w.monitor.fresh(ctx)
}

// fresh waits until a sample whose reading begins after the call was reported, or ctx
// ends.
func (m *monitor) fresh(ctx context.Context) {
	for range 2 { // the reading that goes on now may have begun before
		m.mu.Lock()
		round := m.round
		m.mu.Unlock()
		m.wake()
		select {
		case <-round:
		case <-ctx.Done():
			return
		}
	}
}

// rounded tells those who wait that a sample was read and reported.
func (m *monitor) rounded() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.round)
	m.round = make(chan struct{})
}
