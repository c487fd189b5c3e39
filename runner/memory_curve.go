package runner

import (
	"maps"
	"slices"

	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/monitor"
)

// withCurve returns the record with the curve of an attempt, if there is one.
func (r *Record) withCurve(attempt int, c *monitor.Curve) *Record {
	if c == nil {
		return r
	}
	n := *r
	n.Curves = maps.Clone(r.Curves)
	if n.Curves == nil {
		n.Curves = map[int]*monitor.Curve{}
	}
	n.Curves[attempt] = c
	return &n
}

// withCurves adds the memory that the attempts were seen to use.
func (r *Runner) withCurves(rec *Record, v api.Task) api.Task {
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

// withUntouched returns the record with an attempt that never touched its GPUs, if that
// was measured.
func (r *Record) withUntouched(attempt int, measured bool) *Record {
	if !measured {
		return r
	}
	n := *r
	n.Untouched = append(slices.Clone(r.Untouched), attempt)
	return &n
}

// measured reports whether the memory that an attempt used is known, even if it used
// none.
func (r *Record) measured(a *model.Attempt) bool {
	return a.Peak > 0 || slices.Contains(r.Untouched, a.N)
}
