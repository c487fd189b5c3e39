package mapper

import "carma/mapper/model"

// setPersistentFault records a fault of a sample that lasts until a reset.
func (s *State) setPersistentFault(g *model.GPU, in *model.GPUSample) {
	if !in.UntilReset || in.Fault == "" {
		return
	}
	b := model.GPUFault{Fault: in.Fault, Since: s.Now(), Boot: g.Boot}
	if g.Persistent != nil {
		b = *g.Persistent
	}
	b.FromDriver = b.FromDriver || in.FromDriver
	if g.Persistent == nil || b != *g.Persistent {
		g.Persistent = &b
		s.CapacityChanged()
		s.MarkDirty()
	}
}

func (s *State) gpusReset(ev model.GPUsReset) {
	for _, id := range ev.GPUs {
		if g := s.GPU(id); g != nil {
			s.clearFault(g)
		}
	}
}

// clearFault ends the persistent fault of a GPU.
func (s *State) clearFault(g *model.GPU) {
	if g.Persistent == nil {
		return
	}
	g.Persistent = nil
	g.Changed()
	s.placer.ForgetMissing(g)
	s.CapacityChanged()
	s.MarkDirty()
}

// booted handles the present boot of a GPU's machine. A boot other than the one in the
// fault has reset the GPU.
func (s *State) booted(g *model.GPU, boot string) {
	if b := g.Persistent; b != nil && boot != "" && b.Boot != "" && b.Boot != boot {
		s.clearFault(g)
	}
}
