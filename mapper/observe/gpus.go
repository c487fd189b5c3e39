package observe

import (
	"slices"

	"carma/mapper/model"
)

// GPUsFound replaces the inventory of GPUs. One that is gone stays, as missing, until its
// tasks have ended.
func (ob *Observer) GPUsFound(ev model.GPUsFound) {
	next := ob.placer.NextInRing()
	seen, boots := map[model.GPUID]bool{}, map[string]string{}
	var shared []*model.GPU // GPUs whose sharing has changed
	for _, info := range ev.GPUs {
		seen[info.ID], boots[info.Node] = true, info.Boot
		info.Capacity = info.Capacity.Clamp()
		if g := ob.GPU(info.ID); g != nil {
			if !g.Idle() {
				info.Node = g.Node // it cannot leave the other GPUs of its tasks
			}
			if g.Sharing != info.Sharing {
				shared = append(shared, g)
			}
			g.GPUInfo, g.Missing = info, false
			ob.booted(g, info.Boot)
			continue
		}
		g := &model.GPU{GPUInfo: info}
		ob.AddGPU(g)
	}
	for _, g := range slices.Clone(ob.GPUList()) {
		if !seen[g.ID] {
			g.Missing = true
			ob.booted(g, boots[g.Node])
			ob.placer.ForgetMissing(g)
		}
	}
	ob.SortGPUs()
	ob.placer.InventoryChanged(next)
	ob.preempter.ForgetActivity()
	if ob.predictor.FindMPSDomains() {
		ob.placer.DropCache()
	}
	ob.predictor.UpdateSpeeds(shared)
	ob.MarkDirty()
}
