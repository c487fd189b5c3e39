package runner

import (
	"carma/mapper/model"
	"carma/mapper/words"
	"carma/runner/attempt"
)

// applied acts on an event before its decisions are carried out: a second stop may shorten the
// grace.
func (h *hooks) applied(ev model.Event) {
	if ev, ok := ev.(model.Cancel); ok {
		if a := h.attempts[ev.Task]; a != nil && a.StopRequested() {
			a.Stop(h.stopOrder(ev.Task))
		}
	}
}

// carryOut carries out decisions, in order.
func (h *hooks) carryOut(decisions []model.Decision) {
	for _, d := range decisions {
		switch d := d.(type) {
		case model.Launch:
			h.startAttempt(d, false)
			h.Log.Info().Int64("task", int64(d.Task)).Int("attempt", d.Attempt).Strs("grants", words.Grants(d.Grants)).Msg("launch")
		case model.Stop:
			if a := h.attempts[d.Task]; a != nil {
				a.Stop(h.stopOrder(d.Task))
			}
			h.Log.Info().Int64("task", int64(d.Task)).Str("reason", words.Reason(d.Reason)).Msg("stop")
		case model.Suspend:
			h.order(d.Task, attempt.Suspend(d))
			h.Log.Info().Int64("task", int64(d.Task)).Str("reason", words.Reason(d.Reason)).Msg("suspend")
		case model.Resume:
			h.order(d.Task, attempt.Resume(d))
			h.Log.Info().Int64("task", int64(d.Task)).Strs("grants", words.Grants(d.Grants)).Msg("resume")
		case model.Resize:
			if a := h.attempts[d.Task]; a != nil {
				a.Resize()
			}
		case model.GrantExceeded:
			h.Log.Warn().Int64("task", int64(d.Task)).Str("gpu", string(d.GPU)).Stringer("used", d.Used).Stringer("grant", d.Grant).Stringer("booked", d.Booked).Msg("it uses more than was booked for it")
		case model.Idle:
			h.reportIdle(d)
		case model.Requeue:
			h.jobs.Due(d.Task)
			h.Log.Info().Int64("task", int64(d.Task)).Stringer("need", d.Need).Str("reason", words.Reason(d.Reason)).Msg("relaunch")
		case model.Release:
			if rec, _ := h.records.Get(d.Task); rec != nil {
				h.prober.StartIfDue(rec)
			}
		case model.Finish:
			delete(h.attempts, d.Task.ID)
			h.jobs.Due(d.Task.ID)
			h.prober.End(d.Task.ID)
			h.side.Go(func() { h.Logs.Done(int64(d.Task.ID), int64(d.Task.Ended)) })
			h.Log.Info().Int64("task", int64(d.Task.ID)).Str("phase", string(d.Task.Phase)).Int("code", d.Task.Code).Str("reason", words.Reason(d.Task.Reason)).Msg("finished")
		}
	}
}
