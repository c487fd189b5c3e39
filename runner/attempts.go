package runner

import (
	"time"

	"carma/mapper/model"
	"carma/runner/attempt"
	"carma/runner/record"
)

// startAttempt starts the attempt of a launch. Only the loop calls it.
func (r *Runner) startAttempt(l model.Launch, resumed bool) *attempt.Attempt {
	rec, _ := r.records.Get(l.Task)
	if rec == nil {
		// Only a journal that somebody has edited has no record here.
		r.Log.Error().Int64("task", int64(l.Task)).Msg("a task without a record cannot be launched")
		rec = &record.Record{Task: model.Task{Request: model.Request{ID: l.Task}}}
	}
	a := attempt.New(r.attemptDeps, rec, l, resumed)
	r.attempts[l.Task] = a
	r.running.Go(func() { a.Run(r.work) })
	return a
}

// order gives an order to the attempt of a task. Only the loop calls it.
func (r *Runner) order(task model.TaskID, o attempt.Order) {
	a := r.attempts[task]
	if a == nil {
		return // the attempt is ending
	}
	if !a.Order(o) {
		r.Log.Error().Int64("task", int64(task)).Msg("an order to suspend or resume was dropped: the one before has no answer yet")
	}
}

// stopOrder returns how a task must be stopped: as requested, or else with the task's
// grace, from now on.
func (r *Runner) stopOrder(task model.TaskID) record.StopOrder {
	rec, _ := r.records.Get(task)
	if rec != nil && rec.Stop != nil {
		return *rec.Stop
	}
	return record.StopOrder{At: time.Now(), Grace: r.grace(rec)}
}

// grace returns the time that a task gets between the stop signal and the kill.
func (r *Runner) grace(rec *record.Record) time.Duration {
	if rec != nil && rec.Submit.StopGrace > 0 {
		return rec.Submit.StopGrace
	}
	return r.live().StopGrace
}
