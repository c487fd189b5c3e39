package runner

import (
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/record"
)

// preallocates reports whether the task's latest attempt seems to have reserved most of a
// card.
func (r *Runner) preallocates(rec *record.Record, now units.Instant) bool {
	a := rec.Task.Last()
	if a == nil || a.Started == 0 {
		return false
	}
	c := rec.Curves[a.N]
	if c == nil {
		_, c = r.monitor.Observed(rec.ID(), a.N)
	}
	if a.Ended > 0 {
		now = a.Ended
	}
	return c.Preallocates(r.smallest(a), r.opt.SampleEvery, now)
}

// smallest returns the capacity of the smallest GPU of an attempt.
func (r *Runner) smallest(a *model.Attempt) (least units.Bytes) {
	for i, g := range a.Grants {
		if c := r.gpus.Capacity(g.GPU); i == 0 || c < least {
			least = c
		}
	}
	return least
}
