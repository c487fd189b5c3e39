package mapper

import (
	"math"
	"slices"

	"carma/mapper/model"
)

const (
	// classSpread is the standard deviation of the SM activity of tasks of one class
	// around the typical one.
	classSpread = 0.06
	// oddShare is the likelihood of an activity outside all classes, relative to 1 for a
	// task in the middle of a certain class.
	oddShare = 0.1
	// doubtful: an activity found with at least this standard deviation is estimated
	// again beside other neighbours, and when the step time is known.
	doubtful = 0.06
	// leastOfSeveral is the least activity tried on one of several GPUs of a task: it may
	// leave one nearly idle and be busy on another.
	leastOfSeveral = 0.02
)

// against returns the evidence against an SM activity, by an earlier estimate or else by
// the likely classes: the larger, the less likely it is.
func against(b model.Posterior, sm float64, m classPrior) float64 {
	if b.Sd > 0 {
		off := (sm - b.Mean) / b.Sd
		return off * off
	}
	likely := oddShare
	for c, weight := range m {
		off := (sm - typicalLoads[c].SMACT) / classSpread
		likely += weight * math.Exp(-off*off/2)
	}
	return -2 * math.Log(likely)
}

// attributeAgain estimates again, one after the other, the activities on a GPU that were
// found with doubt: with new neighbours, or with new speeds, samples may show more.
func (ln *learner) attributeAgain(g *model.GPU) (sought bool) {
	for i := range g.Residents {
		r := &g.Residents[i]
		t := ln.TaskByID(r.Task)
		if r.Unseen || t.Expected.Source != model.SourceSeen || r.Doubt < doubtful && r.BelievedAt != g.ChangedAt {
			continue
		}
		x := ln.predictor.attribution(g, []int{i})
		x.mix, x.belief = ln.predictor.priorAnyway(t), r.PriorEstimate(g)
		load, doubt := x.seek(-1)
		ln.observed(g, r, load, doubt)
		sought = true
	}
	return sought
}

// stepTimeReported stores the time of a training step from a task's output: the length of
// its kernels decides which task waits for which. The task's activity was found without
// it, so it is estimated again.
func (ln *learner) stepTimeReported(t *model.Task) {
	step := t.StepTime()
	if step == 0 {
		return
	}
	for i, grant := range t.Current().Grants {
		g := ln.GPU(grant.GPU)
		r := g.Resident(t.ID)
		if r.Unseen || g.Coarse || r.Load.Step != 0 || t.Expected.Source != model.SourceSeen {
			continue
		}
		r.Load.Step = step
		t.Expected.Loads = slices.Clone(t.Expected.Loads)
		t.Expected.Loads[i].Step = step
		ln.placer.predict([]*model.GPU{g})
		ln.MarkDirty()
		if len(g.Residents) == 1 || !ln.predictor.settled(g) || ln.predictor.unseen(g) != 0 {
			continue
		}
		if r.BelievedAt != g.ChangedAt {
			r.Doubt = max(r.Doubt, doubtful)
		}
		ln.attributeAgain(g)
		ln.preempter.evictSlowing(g)
	}
}
