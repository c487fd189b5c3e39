package suspend

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Recover finishes an operation that a killed daemon has not completed. want is Runs or
// Suspended. The container's processes may be in any state, frozen or not. Outcomes are
// as for Suspend and Resume; with want Runs, Suspended means that the driver could not
// restore it now. Lost with an *Unavailable in the error means that the driver cannot be
// asked. If ctx ends first, the outcome is Unchanged, and the caller must recover again.
// The container is thawed for a moment, because a frozen process cannot be asked.
func (s *Suspender) Recover(ctx context.Context, c Container, want Outcome, f Facts, t Target) (Result, error) {
	return s.run(ctx, "recover", c, func(o *op) error {
		if want != Runs && want != Suspended {
			return fmt.Errorf("recover to %v", want)
		}
		if err := t.check(); err != nil {
			return err
		}
		if !slices.ContainsFunc(c.PIDs, func(pid int) bool { return s.there(c, pid) }) {
			return errEnded
		}
		if err := s.thaw(ctx, c); err != nil {
			o.result.Outcome = Lost
			return err
		}
		found, err := s.find(ctx, c)
		if err != nil {
			if ctx.Err() == nil { // otherwise the daemon stops, and the next one recovers
				o.result.Outcome = Lost
			}
			return err
		}
		o.pairs = t.Pairs
		if bytes := max(f.Bytes, t.Bytes); bytes > 0 {
			o.copying = CopyLimit(bytes)
		}
		if want == Suspended {
			return o.finish(ctx, f, found)
		}
		return o.release(ctx, found)
	})
}

// finish completes an ordered suspend, or lets the task run if it may not be suspended.
func (o *op) finish(ctx context.Context, f Facts, found []known) error {
	p, err := o.s.Check(ctx, o.c, f)
	if err != nil {
		return and(err, o.release(ctx, found))
	}
	o.p, o.result.Process = p, p
	return o.suspend(ctx)
}

// release lets all CUDA processes of the container run. There is usually one process, but
// more may have started meanwhile. The worst outcome counts.
func (o *op) release(ctx context.Context, found []known) error {
	worst := Runs
	var all error
	for _, p := range found {
		if err := o.s.thaw(ctx, o.c); err != nil { // the previous process may be frozen again
			o.result.Outcome = Lost
			return err
		}
		o.p, o.result.Process, o.undoing = p.Process, p.Process, false
		err := o.resume(ctx)
		if errors.Is(err, errEnded) {
			continue
		}
		worst = max(worst, o.result.Outcome)
		all = and(all, err)
	}
	o.result.Outcome = worst
	return all
}
