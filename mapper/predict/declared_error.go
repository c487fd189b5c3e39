package predict

import (
	"math"

	"carma/mapper/model"
)

// declaredError measures the error of activities declared before the run, by comparison
// with samples of tasks that were alone.
type declaredError struct {
	Compared int `json:"compared,omitempty"`
	// Off is the sum of the squares of the differences in SM activity.
	Off float64 `json:"off,omitempty"`
}

const (
	// priorDeclared is the number of assumed comparisons without any difference.
	priorDeclared = 10
	// declaredErrorStep is the step of the standard deviation: each new value causes all tasks to
	// be scored again.
	declaredErrorStep = 0.02
	// DeclaredMost is the largest difference that one comparison counts: a task that shows
	// far less may be waiting for something.
	DeclaredMost = 0.2
)

// spread returns the standard deviation of a declared activity, in steps of
// declaredErrorStep.
func (l declaredError) spread() float64 {
	sd := math.Sqrt(l.Off / float64(priorDeclared+l.Compared))
	return math.Round(sd/declaredErrorStep) * declaredErrorStep
}

// Doubt returns the standard deviation of the SM activity that is expected of a task.
// found is the standard deviation of a measured activity.
func (pr *Predictor) Doubt(t *model.Task, found float64) float64 {
	if !t.IsDeclared() {
		return found
	}
	return max(found, pr.declaredError.spread())
}

// compareDeclared compares the declared activity of a task with its samples while it is
// alone.
func (pr *Predictor) compareDeclared(g *model.GPU) {
	r := &g.Residents[0]
	t := pr.TaskByID(r.Task)
	if len(g.Residents) > 1 || t.GPUs > 1 || r.Unseen || !t.IsDeclared() || g.Coarse || g.OtherProcesses > 0 || g.SMACT < model.IdleActivity {
		return // it may be idle because it reads data
	}
	before, off := pr.declaredError.spread(), min(DeclaredMost, math.Abs(g.SMACT-r.Load.SMACT))
	pr.declaredError.Compared++
	pr.declaredError.Off += off * off
	if pr.declaredError.spread() == before {
		return
	}
	for _, g := range pr.GPUList() {
		g.InvalidateForecast()
	}
	pr.derived.learned++
	pr.MarkDirty()
}
