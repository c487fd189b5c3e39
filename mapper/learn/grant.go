package learn

import "carma/mapper/model"

// SetFirstGrant computes the first grant from the estimate and from earlier runs.
func (ln *Learner) SetFirstGrant(t *model.Task) {
	ln.predictor.ApplyHostHistory(t)
	if t.GPUs == 0 {
		t.NextGrant, t.Learner, t.NextExclusive = 0, false, false
		return
	}
	ln.predictor.ApplyHistory(t)
	t.NextGrant = t.Estimate.Memory.Clamp()
	t.Learner = ln.Learns(t)
	t.NextExclusive = t.Exclusive || t.Estimate.WholeGPU && !t.Learner
	if t.Learner {
		t.NextGrant = ln.LearnerNeed(t.GPUs)
	}
	if most := ln.MostBookable().Of(t.GPUs); t.Estimate.ExceedsByMargin(most) {
		t.NextGrant, t.NextExclusive = t.Estimate.Point.Clamp(), true
	}
}

// UpdateWaiting changes the grant of the next launch of a waiting task. The need raised
// after a GPU OOM is kept unless there is a new estimate.
func (ln *Learner) UpdateWaiting(t *model.Task, c *model.TaskUpdate) {
	if c.GPUs != nil && *c.GPUs != t.GPUs && !t.NoGPU {
		t.GPUs, t.Seen = max(1, *c.GPUs), nil
		if len(t.Pinned) < t.GPUs {
			t.Pinned = nil
		}
	}
	if c.Kind != nil || c.Program != nil {
		ln.RemoveTask(t)
		if c.Kind != nil {
			t.Kind = *c.Kind
		}
		if c.Program != nil {
			t.Program = *c.Program
		}
		ln.AddTask(t)
	}
	if c.Exclusive != nil {
		t.Exclusive = *c.Exclusive
		t.NextExclusive = t.NextExclusive || t.Exclusive
	}
	if c.Estimate != nil {
		t.Estimate = *c.Estimate
	}
	if c.Expected != nil {
		t.Expected, t.Doubt = *c.Expected, 0
	}
	ln.placer.Retry(t)
	ln.predictor.Forget(t)
	switch {
	case len(t.Attempts) == 0:
		ln.SetFirstGrant(t)
	case c.Estimate != nil:
		t.NextGrant, t.NextExclusive, t.Learner = t.Estimate.Memory.Clamp(), t.Exclusive || t.Estimate.WholeGPU, false
	}
	if most := ln.Ceiling(ln.Bookable).Of(t.GPUs); most > 0 && t.NextGrant > most && len(t.Attempts) > 0 {
		t.NextGrant, t.NextExclusive = most, true // more GPUs have less each; it may do with less on each
	}
}
