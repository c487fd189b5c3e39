package runner

import (
	"context"

	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/api"
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
	return c.Preallocates(r.gpus.Smallest(a.Grants), r.opt.SampleEvery, now)
}

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

// freeMemory returns the memory on each GPU that no task has.
func (r *Runner) freeMemory(ctx context.Context) map[model.GPUID]units.Bytes {
	free := map[model.GPUID]units.Bytes{}
	_ = r.loop.Look(ctx, func(s *mapper.State) {
		for _, g := range s.GPUs() {
			free[g.ID] = g.Free(s.Options().Headroom)
		}
	})
	return free
}
