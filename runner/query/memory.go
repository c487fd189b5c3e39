package query

import (
	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/record"
)

// preallocates reports whether the task's latest attempt seems to have reserved most of a
// card.
func (r *Tasks) preallocates(rec *record.Record, now units.Instant) bool {
	a := rec.Task.Last()
	if a == nil || a.Started == 0 {
		return false
	}
	c := rec.Curves[a.N]
	if c == nil {
		_, c = r.c.Monitor.Observed(rec.ID(), a.N)
	}
	if a.Ended > 0 {
		now = a.Ended
	}
	return c.Preallocates(r.c.GPUs.Smallest(a.Grants), r.c.SampleEvery, now)
}

// withCurves adds the memory that the attempts were seen to use.
func (r *Tasks) withCurves(rec *record.Record, v api.Task) api.Task {
	v.Preallocates = r.preallocates(rec, r.c.Clock.Now())
	for i := range v.Attempts {
		at := &v.Attempts[i]
		c := rec.Curves[at.N]
		if c == nil {
			_, c = r.c.Monitor.Observed(rec.ID(), at.N)
		}
		at.Curve = c.View()
	}
	return v
}
