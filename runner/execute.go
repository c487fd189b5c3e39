package runner

import (
	"fmt"

	"carma/mapper/model"
	"carma/mapper/words"
)

// applied acts on an event before its decisions are carried out: a second stop may shorten the
// grace.
func (r *Runner) applied(ev model.Event) {
	if ev, ok := ev.(model.Cancel); ok {
		if w := r.workers[ev.Task]; w != nil && w.stopRequested() {
			w.stop.order(r.stopOrder(ev.Task))
		}
	}
}

// carryOut carries out decisions, in order.
func (r *Runner) carryOut(decisions []model.Decision) {
	for _, d := range decisions {
		switch d := d.(type) {
		case model.Launch:
			r.startWorker(d, false)
			r.Log.Info().Int64("task", int64(d.Task)).Int("attempt", d.Attempt).Strs("grants", grantWords(d.Grants)).Msg("launch")
		case model.Stop:
			if w := r.workers[d.Task]; w != nil {
				w.stop.order(r.stopOrder(d.Task))
			}
			r.Log.Info().Int64("task", int64(d.Task)).Str("reason", words.Reason(d.Reason)).Msg("stop")
		case model.Suspend:
			r.order(d.Task, suspendOrder{suspend: &d})
			r.Log.Info().Int64("task", int64(d.Task)).Str("reason", words.Reason(d.Reason)).Msg("suspend")
		case model.Resume:
			r.order(d.Task, suspendOrder{resume: &d})
			r.Log.Info().Int64("task", int64(d.Task)).Strs("grants", grantWords(d.Grants)).Msg("resume")
		case model.Resize:
			if w := r.workers[d.Task]; w != nil {
				w.resizing.order()
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
			delete(r.workers, d.Task.ID)
			r.jobs.Due(d.Task.ID)
			r.endProbe(d.Task.ID)
			r.side.Go(func() { r.Logs.Done(int64(d.Task.ID), int64(d.Task.Ended)) })
			r.Log.Info().Int64("task", int64(d.Task.ID)).Str("phase", string(d.Task.Phase)).Int("code", d.Task.Code).Str("reason", words.Reason(d.Task.Reason)).Msg("finished")
		}
	}
}

// grantWords formats grants for people, as GPU-1234=12.0 GiB.
func grantWords(grants []model.Grant) []string {
	words := make([]string, len(grants))
	for i, g := range grants {
		words[i] = fmt.Sprintf("%s=%s", g.GPU, g.Memory)
	}
	return words
}
