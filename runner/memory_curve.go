package runner

import (
	"carma/runner/api"
	"carma/runner/record"
)

// withCurves adds the memory that the attempts were seen to use.
func (r *Runner) withCurves(rec *record.Record, v api.Task) api.Task {
	v.Preallocates = r.preallocates(rec, r.Clock.Now())
	for i := range v.Attempts {
		at := &v.Attempts[i]
		c := rec.Curves[at.N]
		if c == nil {
			_, c = r.monitor.Observed(rec.ID(), at.N)
		}
		at.Curve = c.View()
	}
	return v
}
