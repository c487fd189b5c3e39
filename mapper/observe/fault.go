package observe

import "carma/mapper/model"

// setPersistentFault records a fault of a sample that lasts until a reset.
func (ob *Observer) setPersistentFault(g *model.GPU, in *model.GPUSample) {
	if !in.UntilReset || in.Fault == "" {
		return
	}
	b := model.GPUFault{Fault: in.Fault, Since: ob.Now(), Boot: g.Boot}
	if g.Persistent != nil {
		b = *g.Persistent
	}
	b.FromDriver = b.FromDriver || in.FromDriver
	if g.Persistent == nil || b != *g.Persistent {
		g.Persistent = &b
		ob.CapacityChanged()
		ob.MarkDirty()
	}
}

// GPUsReset ends the persistent faults of GPUs that were reset.
func (ob *Observer) GPUsReset(ev model.GPUsReset) {
	for _, id := range ev.GPUs {
		if g := ob.GPU(id); g != nil {
			ob.ClearFault(g)
		}
	}
}

// ClearFault ends the persistent fault of a GPU.
func (ob *Observer) ClearFault(g *model.GPU) {
	if g.Persistent == nil {
		return
	}
	g.Persistent = nil
	g.Changed()
	ob.placer.ForgetMissing(g)
	ob.CapacityChanged()
	ob.MarkDirty()
}

// booted handles the present boot of a GPU's machine. A boot other than the one in the
// fault has reset the GPU.
func (ob *Observer) booted(g *model.GPU, boot string) {
	if b := g.Persistent; b != nil && boot != "" && b.Boot != "" && b.Boot != boot {
		ob.ClearFault(g)
	}
}
