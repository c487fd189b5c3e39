package attempt

import (
	"context"
	"errors"
	"slices"

	"carma/internal/failpoint"
	"carma/mapper"
	"carma/mapper/model"
	"carma/mapper/words"
	"carma/runner/loop"
	"carma/runner/suspend"
)

// serveResume resumes the attempt on GPUs, and always reports the result to the core.
func (s *suspension) serveResume(ctx context.Context, id string, d model.Resume, again bool) {
	answer := func(failure string) {
		s.deps.Loop.Post(loop.Fact(model.Resumed{At: s.deps.Clock.Now(), Task: d.Task, Attempt: d.Attempt, Failure: failure}))
	}
	if s.deps.Suspending == nil {
		answer("this daemon cannot resume programs; stop the task, or start the daemon with the GPUs that it had")
		return
	}
	c := s.container(id)
	before := s.goesTo(d.Grants)
	if !slices.Equal(before, d.Grants) {
		s.limitOn(ctx, id, c)
	}
	failpoint.Hit("resume-begins-aside")
	res, err := s.resumeContainer(ctx, c, d, again)
	failpoint.Hit("resume-done-aside")
	log := s.deps.Log.Info().Int64("task", int64(d.Task)).Int("attempt", d.Attempt).Stringer("outcome", res.Outcome)
	switch {
	case res.Outcome == suspend.Runs, res.Outcome == suspend.Ended: // the rest of the task runs
		s.mu.Lock()
		s.process = suspend.Process{}
		s.mu.Unlock()
		s.deps.Energy.Start(s.deps.Clock.Now(), s.key(), s.rec.User, s.uuids(), false)
		_ = s.resizing.setMemory(ctx, id, 0)
		log.Strs("grants", words.Grants(d.Grants)).Dur("copy", res.Took[suspend.CallRestore]).Msg("resumed")
		answer("")
	case res.Outcome == suspend.Lost && !suspend.IsUnavailable(err):
		s.lose(ctx, id, err)
	default:
		s.goesTo(before)
		log.Err(err).Msg("not resumed")
		answer(failureText(err))
	}
}

// resumeContainer resumes a container.
func (s *suspension) resumeContainer(ctx context.Context, c suspend.Container, d model.Resume, again bool) (suspend.Result, error) {
	by, target := s.deps.Suspending.By, s.target(d)
	s.mu.Lock()
	p := s.process
	s.mu.Unlock()
	if !again && p.PID != 0 {
		res, err := by.Resume(ctx, c, p, target)
		if refusal, ok := errors.AsType[*suspend.Refusal](err); !ok || refusal.Reason != suspend.ReasonUnknown {
			return res, err
		}
		// The process has ended while it was frozen; other processes of the container
		// must run on.
	}
	return by.Recover(ctx, c, suspend.Runs, s.facts(0), target)
}

// target returns the GPUs and memory for a resumed attempt.
func (s *suspension) target(d model.Resume) suspend.Target {
	t := suspend.Target{Driver: s.deps.Suspending.Driver}
	for i, g := range d.Grants {
		if i < len(d.From) && d.From[i] != g.GPU {
			t.Pairs = append(t.Pairs, suspend.Pair{Old: string(d.From[i]), New: string(g.GPU)})
		}
	}
	_ = s.deps.Loop.Look(context.Background(), func(s *mapper.State) {
		if task, ok := s.Task(d.Task); ok && task.Suspension != nil {
			t.Bytes = int64(task.Suspension.Host)
		}
	})
	return t
}

// limitOn makes the driver limit the attempt on the GPUs on which it resumes.
func (s *suspension) limitOn(ctx context.Context, id string, c suspend.Container) {
	if len(c.PIDs) == 0 {
		return
	}
	if err := s.memory.Keep(ctx, id, c.PIDs[0]); err != nil && ctx.Err() == nil {
		s.deps.Log.Warn().Err(err).Int64("task", int64(s.launch.Task)).Msg("the driver does not limit the task's GPU memory where it comes back to")
	}
}
