package attempt

import (
	"context"
	"errors"
	"slices"
	"sync"

	"carma/containers"
	"carma/mapper/model"
	"carma/runner/suspend"
)

// Order is an order of the mapper to suspend or resume an attempt. Either suspend or
// resume is set. again is set if an earlier daemon may have begun the order.
type Order struct {
	suspend *model.Suspend
	resume  *model.Resume
	again   bool
}

// suspension suspends and resumes an attempt, by the orders of the mapper.
type suspension struct {
	*core
	resizing *resizing
	orders   chan Order    // the core waits for an answer, so there is at most one
	over     chan struct{} // closed when no further order is carried out

	mu      sync.Mutex
	process suspend.Process // the suspended process, or zero if unknown
	touched bool            // the container may be frozen
	lost    string          // why the attempt must end, or ""
}

func newSuspension(c *core, z *resizing) *suspension {
	s := &suspension{core: c, resizing: z, orders: make(chan Order, 1), over: make(chan struct{})}
	phase := c.rec.Task.Phase
	s.touched = phase == model.Suspending || phase == model.Suspended || phase == model.Resuming || phase == model.Stopping
	return s
}

// Suspend returns the order to suspend an attempt.
func Suspend(d model.Suspend) Order { return Order{suspend: &d} }

// Resume returns the order to resume an attempt.
func Resume(d model.Resume) Order { return Order{resume: &d} }

// LastOrder returns the last order of an earlier daemon for a task. ok is false if there
// was none.
func LastOrder(t *model.Task) (o Order, ok bool) {
	a, suspended := t.Alive(), t.Suspension
	if a == nil || suspended == nil {
		return o, false
	}
	switch t.Phase {
	case model.Suspending:
		return Order{suspend: &model.Suspend{Task: t.ID, Attempt: a.N, Host: suspended.Host, Leave: suspended.InPlace, Reason: suspended.Reason}, again: true}, true
	case model.Resuming:
		from := make([]model.GPUID, len(suspended.From))
		for i, g := range suspended.From {
			from[i] = g.GPU
		}
		return Order{resume: &model.Resume{Task: t.ID, Attempt: a.N, From: from, Grants: slices.Clone(a.Grants)}, again: true}, true
	}
	return o, false
}

// serve carries out the orders of an attempt until ctx ends or the attempt must
// stop.
func (s *suspension) serve(ctx context.Context, id string) {
	defer close(s.over)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-s.stop.asked:
			cancel()
		case <-ctx.Done():
		}
	}()
	s.detect(ctx, id)
	look, forget := s.watchVacateOffer()
	defer forget()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look:
			if s.reportVacateOffer() {
				look = nil
			}
		case <-s.resizing.asked:
			s.resizing.resize(ctx, id)
		case o := <-s.orders:
			s.touch()
			if o.suspend != nil {
				s.suspend(ctx, id, *o.suspend, o.again || o.suspend.Reason.Code == model.ReasonFoundAway)
			} else {
				s.serveResume(ctx, id, *o.resume, o.again)
			}
		}
	}
}

func (s *suspension) isTouched() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.touched
}

func (s *suspension) touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.touched = true
}

// lostWhy returns why a suspended attempt must end, or "" if it need not.
func (s *suspension) lostWhy() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

// lose ends an attempt that can neither run nor be resumed.
func (s *suspension) lose(ctx context.Context, id string, err error) {
	s.mu.Lock()
	s.lost = failureText(err)
	s.mu.Unlock()
	s.deps.Log.Error().Err(err).Int64("task", int64(s.launch.Task)).Msg("the task is lost; it starts again")
	if err := s.kill(ctx, id); err != nil && ctx.Err() == nil && !errors.Is(err, containers.ErrNotFound) {
		s.deps.Log.Error().Err(err).Int64("task", int64(s.launch.Task)).Msg("the lost task could not be killed")
	}
}

// thawIfFrozen thaws the container of an attempt that is being stopped, because frozen
// threads receive no signal.
func (s *suspension) thawIfFrozen(ctx context.Context, id string) {
	if s.isTouched() {
		s.deps.Thaw(ctx, id, s.containerName())
	}
}

// Thaw thaws a container that may have been suspended.
func (d *Deps) Thaw(ctx context.Context, id, name string) {
	if d.Suspending == nil {
		return
	}
	short, cancel := context.WithTimeout(ctx, signalLimit)
	defer cancel()
	if err := d.Suspending.By.Thaw(short, suspend.FindContainer(d.Processes.Root(), id, name)); err != nil && ctx.Err() == nil {
		d.Log.Warn().Err(err).Str("container", name).Msg("the frozen container could not be thawed; it is tried again")
	}
}
