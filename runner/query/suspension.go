package query

import (
	"cmp"
	"fmt"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/words"
	"carma/runner/api"
)

// suspensionView returns the API form of a task's suspension, or nil if the task is
// neither suspended, suspending nor resuming.
func (r *Tasks) suspensionView(t *model.Task) *api.Suspension {
	s := t.Suspension
	if s == nil || t.Phase == model.Stopping {
		return nil
	}
	v := &api.Suspension{
		By: s.By, Why: s.Why, Since: s.Since.TimeOrZero(), Host: int64(s.Host), Back: s.Automatic, Failures: s.Failures, Stopping: t.StopReason.Code != "",
	}
	if t.Hold != nil {
		v.HeldBy = cmp.Or(t.Hold.By, "carma")
	}
	for _, g := range s.From {
		v.From = append(v.From, r.c.GPUs.Ref(g.GPU))
	}
	return v
}

// suspendedFor returns the time for which an attempt of a task was suspended, up to now.
func suspendedFor(t *model.Task, a *model.Attempt, now units.Instant) time.Duration {
	if s := t.Suspension; s != nil && s.Since > 0 && a.Ended == 0 {
		return a.SuspendedTime + max(0, now.Sub(s.Since))
	}
	return a.SuspendedTime
}

// suspensionText describes the state of a task that is suspending, suspended or resuming, as a
// sentence. held says in words what keeps a suspended task from resuming.
func (r *Tasks) suspensionText(t *model.Task, held string) string {
	s := t.Suspension
	by := words.Reason(model.Reason{Code: model.ReasonSuspended, Name: s.By, Text: s.Why})
	switch {
	case t.Phase == model.Suspending:
		return fmt.Sprintf("it is being %s; %s go to host memory", by, s.Host)
	case t.Phase == model.Resuming:
		return fmt.Sprintf("it comes back to its GPU after it was %s", by)
	case t.StopReason.Code != "":
		return "it was asked to stop: " + words.Reason(t.StopReason)
	}
	text := fmt.Sprintf("%s; it has %s in host memory", by, s.Host)
	switch {
	case t.Hold != nil:
		hold := words.Reason(model.Reason{Code: model.ReasonHold, Name: t.Hold.By, Text: t.Hold.Why})
		return fmt.Sprintf("%s, and is %s: carma release %d", text, hold, t.ID)
	case !s.Automatic:
		return fmt.Sprintf("%s and comes back after carma resume %d", text, t.ID)
	}
	return text + "; it waits to come back: " + cmp.Or(held, "for its GPU")
}
