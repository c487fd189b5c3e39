package attempt

import (
	"context"
	"errors"
	"time"

	"carma/internal/failpoint"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/gpu"
	"carma/runner/loop"
	"carma/runner/suspend"
)

// facts returns the facts that package suspend needs about the attempt.
func (s *suspension) facts(bytes units.Bytes) suspend.Facts {
	o := s.deps.Suspending
	f := suspend.Facts{Driver: o.Driver, Arch: o.Arch, Uses: usesIn(s.deps.Monitor.Readings()), MPS: s.mps.Group() != nil, Bytes: int64(bytes)}
	for _, g := range s.grants() {
		f.MIG = f.MIG || s.deps.GPUs.Devices()[g.GPU].Parent != ""
	}
	return f
}

// suspend suspends the attempt, and always reports the result to the core.
func (s *suspension) suspend(ctx context.Context, id string, d model.Suspend, again bool) {
	answer := func(failure string) {
		s.deps.Loop.Post(loop.Fact(model.SuspendDone{At: s.deps.Clock.Now(), Task: d.Task, Attempt: d.Attempt, Failure: failure}))
	}
	switch o := s.deps.Suspending; {
	case o == nil:
		answer("this daemon cannot suspend programs")
		return
	case o.Off && !again: // the core suspends only programs that vacate on request
		answer("suspend is off in the configuration")
		return
	}
	c := s.container(id)
	if !d.Leave {
		c.Leave = "" // the task must resume on other GPUs
	}
	if err := s.resizing.setMemory(ctx, id, d.Host); err != nil && !again {
		answer(err.Error())
		return
	}
	failpoint.Hit("suspend-begins")
	res, err := s.suspendContainer(ctx, c, s.facts(d.Host), again)
	failpoint.Hit("suspend-done")
	log := s.deps.Log.Info().Int64("task", int64(d.Task)).Int("attempt", d.Attempt).Stringer("outcome", res.Outcome)
	switch res.Outcome {
	case suspend.Suspended:
		s.mu.Lock()
		s.process = res.Process
		s.mu.Unlock()
		s.deps.Energy.Stop(s.deps.Clock.Now(), s.key())
		log.Dur("lock", res.Took[suspend.CallLock]).Dur("copy", res.Took[suspend.CallCheckpoint]).Msg("suspended")
		answer("")
	case suspend.Lost:
		s.lose(ctx, id, err)
	default:
		log.Err(err).Msg("not suspended")
		_ = s.resizing.setMemory(ctx, id, 0)
		answer(failureText(err))
	}
}

// failureText describes an error of package suspend for people. It is never empty: an empty
// text would mean no failure.
func failureText(err error) string {
	if refusal, ok := errors.AsType[*suspend.Refusal](err); ok {
		return refusal.Text
	}
	if err == nil {
		return "nobody knows why"
	}
	return err.Error()
}

// askAgain is the pause after the driver could not be asked for the state of a task.
const askAgain = 5 * time.Second

// suspendContainer suspends a container. If the driver cannot be asked for the result,
// the task may be on its GPUs or off them, so suspendContainer asks until the driver
// answers.
func (s *suspension) suspendContainer(ctx context.Context, c suspend.Container, f suspend.Facts, again bool) (res suspend.Result, err error) {
	by := s.deps.Suspending.By
	if !again {
		res, err = by.Suspend(ctx, c, f)
		again = res.Outcome == suspend.Lost && suspend.IsUnavailable(err)
	}
	for again {
		res, err = by.Recover(ctx, c, suspend.Suspended, f, suspend.Target{})
		if again = suspend.IsUnavailable(err) && ctx.Err() == nil; again {
			s.deps.Log.Warn().Err(err).Int64("task", int64(s.launch.Task)).Msg("it is not known whether the task is suspended; the driver is asked again")
			rest(ctx, askAgain)
		}
	}
	return res, err
}

// rest waits for a time, or until ctx ends.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// usesIn returns the processes on GPUs in a sample.
func usesIn(samples []gpu.Sample) (all []suspend.Use) {
	for _, s := range samples {
		for _, p := range s.Processes {
			if p.PID != 0 {
				all = append(all, suspend.Use{PID: p.PID, GPU: s.UUID})
			}
		}
	}
	return all
}
