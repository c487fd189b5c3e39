package place

import (
	"cmp"
	"slices"

	"carma/mapper/ledger"
	"carma/mapper/model"
)

// Fits reports whether enough of the GPUs that would take a task are in one machine, and
// the policy accepts them.
func (pl *Placer) Fits(t *model.Task, gpus []model.GPUID) bool {
	if t.GPUs == 0 {
		return pl.reserve.HostShort(t).Code == ""
	}
	return pl.FitsGPUs(t, gpus, func(g *model.GPU) bool { return pl.reserve.NodeFits(t, g.Node) })
}

// FitsGPUs does the same for the GPUs that pass a filter, whatever the machines have.
func (pl *Placer) FitsGPUs(t *model.Task, ids []model.GPUID, pass func(*model.GPU) bool) bool {
	var gpus []*model.GPU
	for _, id := range ids {
		if g := pl.GPU(id); pass(g) {
			gpus = append(gpus, g)
		}
	}
	gpus = ledger.OfMachinesWith(t.GPUs, gpus)
	return len(gpus) > 0 && (!pl.Predicts() || pl.policy.Pick(policyView{pl}, t, gpus) != nil)
}

// Nearest returns the rejection by the GPU that is closest to being usable: the one that
// failed the latest precondition, then the one with the most free memory.
func (pl *Placer) Nearest(all []model.Rejection) model.Rejection {
	return slices.MaxFunc(all, func(a, b model.Rejection) int {
		return cmp.Or(
			cmp.Compare(slices.Index(ruleOrder, a.Rule), slices.Index(ruleOrder, b.Rule)),
			cmp.Compare(pl.FreeMemory(pl.GPU(a.GPU)), pl.FreeMemory(pl.GPU(b.GPU))),
			cmp.Compare(b.Index, a.Index))
	})
}
