package place

import (
	"carma/mapper/model"
	"carma/mapper/policy"
	"carma/mapper/predict"
)

// Forecasts returns the forecasts of the residents of a GPU, with the SM activity that
// they do not explain as a task without number. The caller must not change them; they are
// valid until the next call of the placer.
func (pl *Placer) Forecasts(g *model.GPU) []predict.TaskForecast { return pl.scorer.memo(g).parts }

// AddedSeconds returns the seconds that the first part of a task is predicted to add to
// the sum of all completion times on a GPU.
func (pl *Placer) AddedSeconds(t *model.Task, g *model.GPU) float64 {
	added, _ := pl.scorer.weigh(g, pl.candidatesOf(t)[0])
	return added
}

// FinishSeconds returns the seconds after which the first part of a task is predicted to
// end on a GPU.
func (pl *Placer) FinishSeconds(t *model.Task, g *model.GPU) float64 {
	return pl.scorer.score(g, pl.candidatesOf(t)[0]).finish
}

// View returns what policies read.
func (pl *Placer) View() policy.View { return policyView{pl} }

// Policy returns the policy.
func (pl *Placer) Policy() *policy.Policy { return pl.policy }

// SetPolicy replaces the policy, and drops all cached results.
func (pl *Placer) SetPolicy(p *policy.Policy) {
	pl.policy, pl.tracker.predicts = p, p.Pick != nil
	pl.DropCache()
}

// Asked returns how often a GPU was asked whether it takes a task, since the start.
func (pl *Placer) Asked() int { return pl.asked }
