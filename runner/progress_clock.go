package runner

import (
	"fmt"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/words"
	"carma/runner/gpu"
)

// suspendedSpan is an interval in which an attempt was suspended. to is 0 while the
// attempt is suspended.
type suspendedSpan struct{ from, to units.Instant }

// reportSuspension reports to the reader of a task's output, and to its terminal, when the task
// is suspended and resumed.
func (r *Runner) reportSuspension(ev model.Event) {
	switch ev := ev.(type) {
	case model.SuspendDone:
		if t, ok := r.state.Task(ev.Task); ok && ev.Failure == "" && t.Phase != model.Running {
			r.followers.get(gpu.AttemptKey{Task: ev.Task, Attempt: ev.Attempt}).leaves(ev.At)
			r.consoles.Say(ev.Task, awayText(t))
		}
	case model.Resumed:
		if t, ok := r.state.Task(ev.Task); ok && ev.Failure == "" && t.Phase == model.Running {
			r.consoles.Say(ev.Task, "it is back on its GPU, and goes on")
			r.followers.get(gpu.AttemptKey{Task: ev.Task, Attempt: ev.Attempt}).returns(ev.At)
		}
	}
}

// awayText tells attached users that the task is suspended.
func awayText(t *model.Task) string {
	if t.Suspension == nil {
		return "it is off its GPU"
	}
	by := words.Reason(model.Reason{Code: model.ReasonSuspended, Name: t.Suspension.By, Text: t.Suspension.Why})
	return fmt.Sprintf("it is %s; its programs stand still until %s", by, untilBack(t))
}

func (f *follower) leaves(at units.Instant) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.gone); n == 0 || f.gone[n-1].to > 0 {
		f.gone = append(f.gone, suspendedSpan{from: at})
	}
}

func (f *follower) returns(at units.Instant) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.gone); n > 0 && f.gone[n-1].to == 0 {
		f.gone[n-1].to = max(at, f.gone[n-1].from)
	}
}

// lived returns the reader's time, which does not advance while the attempt is suspended,
// because a suspension must not look like a pause of the program.
func (f *follower) lived(at units.Instant) time.Time {
	out := at
	for _, g := range f.gone {
		switch {
		case at <= g.from:
		case g.to == 0 || at < g.to:
			out -= at - g.from
		default:
			out -= g.to - g.from
		}
	}
	return out.Time()
}

// passed returns the daemon's time at which the reader's clock showed lived.
func (f *follower) passed(lived time.Time) time.Time {
	if lived.IsZero() {
		return lived
	}
	for _, g := range f.gone {
		if g.to > 0 && lived.After(g.from.Time()) {
			lived = lived.Add(g.to.Sub(g.from))
		}
	}
	return lived
}
