package suspend

import (
	"context"
	"errors"
	"fmt"
)

// The order of the steps is fixed for both operations.
//
// Suspend: lock, checkpoint, freeze. The driver talks to a thread of the process itself,
// the restore thread (cuCheckpointProcessGetRestoreThreadId). A frozen process answers no
// call, not even the one for its state (CRIU locks before it freezes,
// checkpoint-restore/criu#2470).
//
// Resume: thaw, restore, unlock. Restore needs that thread as well; CRIU wakes only that
// thread before it restores. A control group wakes all threads. That does no harm,
// because the threads' CUDA calls wait until unlock. Only a program that touches managed
// memory would crash, so such a task is not suspended.

// undoFaults is the number of failed calls that are tolerated on the way back to running,
// because otherwise the task would be lost.
const undoFaults = 2

// Suspend takes a container's CUDA process off its GPU and freezes the container. Outcomes:
// Suspended; Unchanged with a *Refusal, or if the driver cannot be asked; Runs if a step
// failed and was undone; Ended; Lost. If ctx ends, the current step is finished and all is
// undone. Until it returns, the GPU's memory may still be in use or be needed again.
func (s *Suspender) Suspend(ctx context.Context, c Container, f Facts) (Result, error) {
	return s.run(ctx, "suspend", c, func(o *op) (err error) {
		if o.p, err = s.Check(ctx, c, f); err != nil {
			return err
		}
		o.result.Process = o.p
		if f.Bytes > 0 {
			o.copying = CopyLimit(f.Bytes)
		}
		return o.suspend(ctx)
	})
}

func (o *op) suspend(ctx context.Context) error {
	err := o.drive(ctx, Checkpointed, 0)
	if err == nil {
		err = o.s.freeze(ctx, o.c)
	}
	if err == nil {
		o.result.Outcome = Suspended
		return nil
	}
	if errors.Is(err, errEnded) {
		return err
	}
	return and(err, o.undo(context.WithoutCancel(ctx)))
}

// undo lets the task run again after a failed suspend. Its error reports that the task is
// lost.
func (o *op) undo(ctx context.Context) error {
	if err := o.s.thaw(ctx, o.c); err != nil {
		o.result.Outcome = Lost
		return err
	}
	o.undoing = true
	err := o.drive(ctx, Running, undoFaults)
	if err == nil {
		o.result.Outcome = Runs
		return nil
	}
	o.result.Outcome = Lost
	return fmt.Errorf("and back: %w", err)
}

// Target is the destination of a resumed process.
type Target struct {
	// Pairs move the process to other GPUs. They must name every GPU that the process has
	// according to the driver. If empty, the process resumes on the same GPU.
	Pairs []Pair
	// Bytes is the process's GPU memory, for the time limit of copying, or 0 if unknown.
	Bytes int64
	// Driver is the version of the NVIDIA driver, needed for Pairs only.
	Driver string
}

func (t Target) check() error {
	if len(t.Pairs) == 0 {
		return nil
	}
	if err := (Facts{Driver: t.Driver, Arch: "amd64"}).Possible(true); err != nil {
		return err
	}
	if err := checkPairs(t.Pairs); err != nil {
		return refuse(ReasonGPU, "%v", err)
	}
	return nil
}

// Resume restores a suspended process to a GPU and lets it run. p is the result of Suspend.
// Outcomes: Runs; Unchanged with a *Refusal; Suspended if the driver could not restore it
// now and the process is as before, for example without enough free memory on the GPU;
// Ended; Lost.
func (s *Suspender) Resume(ctx context.Context, c Container, p Process, t Target) (Result, error) {
	return s.run(ctx, "resume", c, func(o *op) error {
		if err := t.check(); err != nil {
			return err
		}
		if err := s.same(c, p); errors.Is(err, errForeign) {
			return refuse(ReasonUnknown, "%v", err)
		} else if err != nil {
			return err
		}
		if err := s.thaw(ctx, c); err != nil {
			o.result.Outcome = Suspended
			return and(err, s.freeze(context.WithoutCancel(ctx), c))
		}
		o.p, o.result.Process, o.pairs = p, p, t.Pairs
		if t.Bytes > 0 {
			o.copying = CopyLimit(t.Bytes)
		}
		return o.resume(ctx)
	})
}

// resume makes the process of a thawed container run, or leaves it suspended.
func (o *op) resume(ctx context.Context) error {
	err := o.drive(ctx, Running, 1)
	if err == nil {
		o.result.Outcome = Runs
		return nil
	}
	if errors.Is(err, errEnded) {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	switch state, lost := o.ask(ctx); {
	case errors.Is(lost, errEnded):
		return lost
	case lost != nil:
		o.result.Outcome = Lost
		return and(err, lost)
	case state == Checkpointed:
		o.result.Outcome = Suspended
		return and(err, o.s.freeze(ctx, o.c))
	}
	// The process has its memory on a GPU, so it continues to run.
	return and(err, o.undo(ctx))
}
