package predict

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
	// Doubtful is the standard deviation from which an estimated activity is estimated again,
	// beside other neighbours or when the step time is known.
	Doubtful = 0.06
	// leastOfSeveral is the least activity tried on one of several GPUs of a task: it may
	// leave one nearly idle and be busy on another.
	leastOfSeveral = 0.02
)

// against returns a penalty for an SM activity that an earlier estimate, or else the prior,
// makes unlikely. A larger value means less likely.
func against(b model.Posterior, sm float64, m ClassPrior) float64 {
	if b.Sd > 0 {
		off := (sm - b.Mean) / b.Sd
		return off * off
	}
	likely := oddShare
	for c, weight := range m {
		off := (sm - TypicalLoads[c].SMACT) / classSpread
		likely += weight * math.Exp(-off*off/2)
	}
	return -2 * math.Log(likely)
}

// attributeAgain estimates again, one after the other, the doubtful activities on a GPU,
// because the samples with new neighbours or new speeds may be more exact. known are the tasks
// whose load was not known before.
func (pr *Predictor) attributeAgain(g *model.GPU) (known []*model.Task, sought bool) {
	for i := range g.Residents {
		r := &g.Residents[i]
		t := pr.TaskByID(r.Task)
		if r.Unseen || t.Expected.Source != model.SourceSeen || r.Doubt < Doubtful && r.BelievedAt != g.ChangedAt {
			continue
		}
		x := pr.attribution(g, []int{i})
		x.mix, x.belief = pr.priorAnyway(t), r.PriorEstimate(g)
		load, doubt := x.seek(-1)
		known = append(known, pr.observed(g, r, load, doubt)...)
		sought = true
	}
	return known, sought
}

// StepTimeReported stores the time of a training step from a task's output, for one of its
// GPUs: the step time determines how tasks delay each other. If the task's activity was
// estimated without the step time, it is estimated again, and sought is true.
func (pr *Predictor) StepTimeReported(t *model.Task, gpu int) (known []*model.Task, sought bool) {
	step, g := t.StepTime(), pr.GPU(t.Current().Grants[gpu].GPU)
	r := g.Resident(t.ID)
	if step == 0 || r.Unseen || g.Coarse || r.Load.Step != 0 || t.Expected.Source != model.SourceSeen {
		return nil, false
	}
	r.Load.Step = step
	t.Expected.Loads = slices.Clone(t.Expected.Loads)
	t.Expected.Loads[gpu].Step = step
	pr.UpdateSpeeds([]*model.GPU{g})
	pr.MarkDirty()
	if len(g.Residents) == 1 || !pr.SamplesShowTasks(g) || pr.TaskOfUnknownLoad(g) != 0 {
		return nil, false
	}
	if r.BelievedAt != g.ChangedAt {
		r.Doubt = max(r.Doubt, Doubtful)
	}
	known, _ = pr.attributeAgain(g)
	return known, true
}
