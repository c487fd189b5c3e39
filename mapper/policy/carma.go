package policy

import (
	"math"
	"slices"

	"carma/mapper/ledger"
	"carma/mapper/model"
)

// avoidCost is added, in seconds, for a GPU on which the task's infrastructure has
// failed. The GPU is taken only if others are worse.
const avoidCost = 3600

// slowdownFilter is the filter of policy carma: it rejects a GPU that takes none of the
// task's parts.
func slowdownFilter(v View, t *model.Task, g *model.GPU) (rule model.Rule) {
	if v.ClosedTo(t, g) != 0 {
		return model.RuleUnseen
	}
	for _, id := range v.Candidates(t) {
		if rule = v.SlowdownRule(g, id); rule == "" {
			break
		}
	}
	return rule
}

// leastAdded picks the GPUs, all of one machine, on which a task adds least to the sum of
// all completion times: its own time plus the delay of its neighbours. A task on several
// GPUs gets GPUs that are close to each other, if any take it.
func leastAdded(v View, t *model.Task, fitting []*model.GPU) []*model.GPU {
	if t.GPUs > 1 {
		for _, group := range ledger.Closeness {
			if best := leastAddedAmong(v, t, ledger.Near(t.GPUs, fitting, group)); best != nil && !slices.ContainsFunc(best, t.Avoids) {
				return best
			}
		}
	}
	var machines [][]*model.GPU
	for len(fitting) > 0 {
		n := 1
		for n < len(fitting) && fitting[n].Node == fitting[0].Node {
			n++
		}
		machines = append(machines, fitting[:n])
		fitting = fitting[n:]
	}
	return leastAddedAmong(v, t, machines)
}

// leastAddedAmong picks among groups of GPUs.
func leastAddedAmong(v View, t *model.Task, groups [][]*model.GPU) (best []*model.GPU) {
	least := math.Inf(1)
	for _, some := range groups {
		if gpus, added := leastAddedOf(v, t, some); added < least {
			best, least = gpus, added
		}
	}
	return best
}

// leastAddedOf picks the GPUs one after the other, because the task may load each of
// them differently.
func leastAddedOf(v View, t *model.Task, fitting []*model.GPU) (picked []*model.GPU, total float64) {
	for _, id := range v.Candidates(t) {
		var best *model.GPU
		least := math.Inf(1)
		for _, g := range fitting {
			if slices.Contains(picked, g) {
				continue
			}
			added, no := v.Added(g, id)
			if t.Avoids(g) {
				added += avoidCost
			}
			if no == "" && added < least {
				best, least = g, added
			}
		}
		if best == nil {
			return nil, math.Inf(1)
		}
		picked = append(picked, best)
		total += least
	}
	return picked, total
}
