package place

import (
	"slices"

	"carma/internal/units"
	"carma/mapper/model"
)

// policyView implements [policy.View] on the placer.
type policyView struct{ pl *Placer }

// FreeMemory implements [policy.View].
func (v policyView) FreeMemory(g *model.GPU) units.Bytes { return v.pl.FreeMemory(g) }

// RingDistance implements [policy.View].
func (v policyView) RingDistance(g *model.GPU) int {
	return (g.Pos() - v.pl.ring + len(v.pl.GPUList())) % len(v.pl.GPUList())
}

// ClosedTo implements [policy.View].
func (v policyView) ClosedTo(t *model.Task, g *model.GPU) model.TaskID {
	return v.pl.scorer.closedTo(t, g)
}

// Candidates implements [policy.View].
func (v policyView) Candidates(t *model.Task) []int { return v.pl.candidatesOf(t) }

// SlowdownRule implements [policy.View].
func (v policyView) SlowdownRule(g *model.GPU, candidate int) model.Rule {
	return v.pl.scorer.slowdownRule(g, candidate)
}

// Added implements [policy.View].
func (v policyView) Added(g *model.GPU, candidate int) (seconds float64, rule model.Rule) {
	return v.pl.scorer.added(g, candidate)
}

// rank sorts the candidates for a task, best first: GPUs on which its infrastructure
// failed go last, idle ones first if so configured, then the policy's order.
func (pl *Placer) rank(t *model.Task, candidates []*model.GPU) {
	order := func(a, b *model.GPU) int {
		if len(t.Avoid) > 0 {
			if c := model.CompareBools(t.Avoids(a), t.Avoids(b)); c != 0 {
				return c
			}
		}
		if pl.Options().IdleFirst {
			if c := model.CompareBools(!a.Idle(), !b.Idle()); c != 0 {
				return c
			}
		}
		return pl.policy.Order(policyView{pl}, a, b)
	}
	if t.GPUs == 1 { // only the first matters
		candidates[0] = slices.MinFunc(candidates, order)
		return
	}
	slices.SortStableFunc(candidates, order)
}
