package runner

import (
	"carma/mapper/model"
	"carma/mapper/words"
	"carma/runner/attempt"
)

// applied acts on an event before its decisions are carried out: a second stop may shorten the
// grace.
func (r *Runner) applied(ev model.Event) {
	if ev, ok := ev.(model.Cancel); ok {
		if a := r.attempts[ev.Task]; a != nil && a.StopRequested() {
			a.Stop(r.stopOrder(ev.Task))
		}
	}
}

// carryOut carries out decisions, in order.
func (r *Runner) carryOut(decisions []model.Decision) {
	for _, d := range decisions {
		switch d := d.(type) {
		case model.Launch:
			r.startAttempt(d, false)
			r.Log.Info().Int64("task", int64(d.Task)).Int("attempt", d.Attempt).Strs("grants", words.Grants(d.Grants)).Msg("launch")
		case model.Stop:
			if a := r.attempts[d.Task]; a != nil {
				a.Stop(r.stopOrder(d.Task))
			}
			r.Log.Info().Int64("task", int64(d.Task)).Str("reason", words.Reason(d.Reason)).Msg("stop")
		case model.Suspend:
			r.order(d.Task, attempt.Suspend(d))
			r.Log.Info().Int64("task", int64(d.Task)).Str("reason", words.Reason(d.Reason)).Msg("suspend")
		case model.Resume:
			r.order(d.Task, attempt.Resume(d))
			r.Log.Info().Int64("task", int64(d.Task)).Strs("grants", words.Grants(d.Grants)).Msg("resume")
		case model.Resize:
			if a := r.attempts[d.Task]; a != nil {
				a.Resize()
			}
		case model.GrantExceeded:
			r.Log.Warn().Int64("task", int64(d.Task)).Str("gpu", string(d.GPU)).Stringer("used", d.Used).Stringer("grant", d.Grant).Stringer("booked", d.Booked).Msg("it uses more than was booked for it")
		case model.Idle:
			r.reportIdle(d)
		case model.Requeue:
			r.jobs.Due(d.Task)
			r.Log.Info().Int64("task", int64(d.Task)).Stringer("need", d.Need).Str("reason", words.Reason(d.Reason)).Msg("relaunch")
		case model.Release:
			if rec, _ := r.records.Get(d.Task); rec != nil {
				r.probeIfDue(rec)
			}
		case model.Finish:
			delete(r.attempts, d.Task.ID)
			r.jobs.Due(d.Task.ID)
			r.endProbe(d.Task.ID)
			r.side.Go(func() { r.Logs.Done(int64(d.Task.ID), int64(d.Task.Ended)) })
			r.Log.Info().Int64("task", int64(d.Task.ID)).Str("phase", string(d.Task.Phase)).Int("code", d.Task.Code).Str("reason", words.Reason(d.Task.Reason)).Msg("finished")
		}
	}
}
