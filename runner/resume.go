package runner

import (
	"context"
	"errors"
	"slices"

	"carma/internal/failpoint"
	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/loop"
	"carma/runner/suspend"
)

// serveResume resumes the attempt on GPUs, and always reports the result to the core.
func (w *worker) serveResume(ctx context.Context, id string, d model.Resume, again bool) {
	answer := func(failure string) {
		w.deps.Loop.Post(loop.Fact(model.Resumed{At: w.deps.Clock.Now(), Task: d.Task, Attempt: d.Attempt, Failure: failure}))
	}
	if w.deps.Suspending == nil {
		answer("this daemon cannot resume programs; stop the task, or start the daemon with the GPUs that it had")
		return
	}
	c := w.container(id)
	before := w.goesTo(d.Grants)
	if !slices.Equal(before, d.Grants) {
		w.limitOn(ctx, id, c)
	}
	failpoint.Hit("resume-begins-aside")
	res, err := w.resumeContainer(ctx, c, d, again)
	failpoint.Hit("resume-done-aside")
	log := w.deps.Log.Info().Int64("task", int64(d.Task)).Int("attempt", d.Attempt).Stringer("outcome", res.Outcome)
	switch {
	case res.Outcome == suspend.Runs, res.Outcome == suspend.Ended: // the rest of the task runs
		w.aside.mu.Lock()
		w.aside.process = suspend.Process{}
		w.aside.mu.Unlock()
		w.deps.Energy.Start(w.deps.Clock.Now(), w.key(), w.rec.User, w.uuids(), false)
		_ = w.setMemory(ctx, id, 0)
		log.Strs("grants", grantWords(d.Grants)).Dur("copy", res.Took[suspend.CallRestore]).Msg("resumed")
		answer("")
	case res.Outcome == suspend.Lost && !suspend.IsUnavailable(err):
		w.lose(ctx, id, err)
	default:
		w.goesTo(before)
		log.Err(err).Msg("not resumed")
		answer(failureText(err))
	}
}

// resumeContainer resumes a container.
func (w *worker) resumeContainer(ctx context.Context, c suspend.Container, d model.Resume, again bool) (suspend.Result, error) {
	by, target := w.deps.Suspending.By, w.target(d)
	w.aside.mu.Lock()
	p := w.aside.process
	w.aside.mu.Unlock()
	if !again && p.PID != 0 {
		res, err := by.Resume(ctx, c, p, target)
		if refusal, ok := errors.AsType[*suspend.Refusal](err); !ok || refusal.Reason != suspend.ReasonUnknown {
			return res, err
		}
		// The process has ended while it was frozen; other processes of the container
		// must run on.
	}
	return by.Recover(ctx, c, suspend.Runs, w.facts(0), target)
}

// target returns the GPUs and memory for a resumed attempt.
func (w *worker) target(d model.Resume) suspend.Target {
	t := suspend.Target{Driver: w.deps.Suspending.Driver}
	for i, g := range d.Grants {
		if i < len(d.From) && d.From[i] != g.GPU {
			t.Pairs = append(t.Pairs, suspend.Pair{Old: string(d.From[i]), New: string(g.GPU)})
		}
	}
	_ = w.deps.Loop.Look(context.Background(), func(s *mapper.State) {
		if task, ok := s.Task(d.Task); ok && task.Suspension != nil {
			t.Bytes = int64(task.Suspension.Host)
		}
	})
	return t
}

// goesTo records the grants on which the attempt resumes, and returns the previous ones.
func (w *worker) goesTo(grants []model.Grant) (before []model.Grant) {
	before = w.grants()
	w.aside.mu.Lock()
	defer w.aside.mu.Unlock()
	w.aside.grants = slices.Clone(grants)
	return before
}

// limitOn makes the driver limit the attempt on the GPUs on which it resumes.
func (w *worker) limitOn(ctx context.Context, id string, c suspend.Container) {
	if len(c.PIDs) == 0 {
		return
	}
	if err := w.memory.Keep(ctx, id, c.PIDs[0]); err != nil && ctx.Err() == nil {
		w.deps.Log.Warn().Err(err).Int64("task", int64(w.launch.Task)).Msg("the driver does not limit the task's GPU memory where it comes back to")
	}
}
