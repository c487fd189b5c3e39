package runner

import (
	"fmt"

	"carma/mapper/model"
	"carma/mapper/words"
)

// refresh updates the record of an event's task, and a running stop.
func (r *Runner) refresh(ev model.Event) {
	switch ev := ev.(type) {
	case model.Removed:
		for _, id := range ev.Tasks {
			r.records.Drop(id)
		}
	case model.Cancel:
		// A second stop may shorten the grace.
		if w := r.workers[ev.Task]; w != nil && w.stopRequested() {
			w.stop.order(r.stopOrder(ev.Task))
		}
	}
	if id := model.About(ev); id != 0 {
		r.refreshTask(id)
	}
}

func (r *Runner) refreshTask(id model.TaskID) {
	rec, _ := r.records.Get(id)
	if t, ok := r.loop.State().Task(id); ok && rec != nil {
		r.records.Put(rec.WithTask(*t))
	}
}

// carryOut carries out decisions, in order.
func (r *Runner) carryOut(decisions []model.Decision) {
	for _, d := range decisions {
		switch d := d.(type) {
		case model.Launch:
			r.refreshTask(d.Task)
			r.startWorker(d, false)
			r.Log.Info().Int64("task", int64(d.Task)).Int("attempt", d.Attempt).Strs("grants", grantWords(d.Grants)).Msg("launch")
		case model.Stop:
			r.refreshTask(d.Task) // the task is shown as stopping from now on
			if w := r.workers[d.Task]; w != nil {
				w.stop.order(r.stopOrder(d.Task))
			}
			r.Log.Info().Int64("task", int64(d.Task)).Str("reason", words.Reason(d.Reason)).Msg("stop")
		case model.Suspend:
			r.refreshTask(d.Task)
			r.order(d.Task, suspendOrder{suspend: &d})
			r.Log.Info().Int64("task", int64(d.Task)).Str("reason", words.Reason(d.Reason)).Msg("suspend")
		case model.Resume:
			r.refreshTask(d.Task)
			r.order(d.Task, suspendOrder{resume: &d})
			r.Log.Info().Int64("task", int64(d.Task)).Strs("grants", grantWords(d.Grants)).Msg("resume")
		case model.Resize:
			r.refreshTask(d.Task)
			if w := r.workers[d.Task]; w != nil {
				w.resizing.order()
			}
		case model.GrantExceeded:
			r.Log.Warn().Int64("task", int64(d.Task)).Str("gpu", string(d.GPU)).Stringer("used", d.Used).Stringer("grant", d.Grant).Stringer("booked", d.Booked).Msg("it uses more than was booked for it")
		case model.Idle:
			r.refreshTask(d.Task)
			r.reportIdle(d)
		case model.GrantChanged:
			r.refreshTask(d.Task)
		case model.Requeue:
			r.refreshTask(d.Task)
			r.jobDue(d.Task)
			r.Log.Info().Int64("task", int64(d.Task)).Stringer("need", d.Need).Str("reason", words.Reason(d.Reason)).Msg("relaunch")
		case model.Release:
			r.refreshTask(d.Task)
			if rec, _ := r.records.Get(d.Task); rec != nil {
				r.probeIfDue(rec)
			}
		case model.Finish:
			if rec, _ := r.records.Get(d.Task.ID); rec != nil {
				r.records.Put(rec.WithTask(d.Task))
			}
			delete(r.workers, d.Task.ID)
			r.jobDue(d.Task.ID)
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
