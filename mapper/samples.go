package mapper

import (
	"slices"

	"carma/mapper/model"
)

func (s *State) found(ev model.GPUsFound) {
	next := s.placer.NextInRing()
	seen, boots := map[model.GPUID]bool{}, map[string]string{}
	var shared []*model.GPU // GPUs whose sharing has changed
	for _, info := range ev.GPUs {
		seen[info.ID], boots[info.Node] = true, info.Boot
		info.Capacity = info.Capacity.Clamp()
		if g := s.GPU(info.ID); g != nil {
			if !g.Idle() {
				info.Node = g.Node // it cannot leave the other GPUs of its tasks
			}
			if g.Sharing != info.Sharing {
				shared = append(shared, g)
			}
			g.GPUInfo, g.Missing = info, false
			s.booted(g, info.Boot)
			continue
		}
		g := &model.GPU{GPUInfo: info}
		s.AddGPU(g)
	}
	for _, g := range slices.Clone(s.GPUList()) {
		if !seen[g.ID] {
			g.Missing = true
			s.booted(g, boots[g.Node])
			s.placer.ForgetMissing(g)
		}
	}
	s.SortGPUs()
	s.placer.InventoryChanged(next)
	s.preempter.ForgetActivity()
	if s.predictor.FindMPSDomains() {
		s.placer.DropCache()
	}
	s.predictor.UpdateSpeeds(shared)
	s.MarkDirty()
}

func (s *State) engineChanged(ev model.EngineChanged) {
	s.breakers.EngineChanged(ev.Up, ev.Reason)
	s.MarkDirty()
}

func (s *State) sampled(ev model.Sampled) {
	s.hostSampled(ev.Hosts)
	for i := range ev.GPUs {
		in := &ev.GPUs[i]
		g := s.GPU(in.ID)
		if g == nil {
			continue
		}
		free, busy := s.FreeMemory(g), s.Busy(g)
		foreign, behind := in.OtherProcesses.Clamp(), s.recordResidue(in.Tasks)
		for _, b := range behind {
			foreign = (foreign + b.Used).Clamp()
		}
		if foreign != g.OtherProcesses || in.Fault != g.Fault || !slices.Equal(behind, g.Residue) {
			g.OtherProcesses, g.Fault, g.Residue = foreign, in.Fault, behind
			s.placer.Reconsider(g) // the tasks of residues may see it differently
			s.CapacityChanged()
			s.MarkDirty()
		}
		s.setPersistentFault(g, in)
		g.Used = in.Used.Clamp()
		s.predictor.RecordActivity(g)
		s.predictor.SetCoarse(g, in.Coarse)
		g.SMACT, g.SMOCC, g.DRAMA = model.Fraction(in.SMACT), model.Fraction(in.SMOCC), model.Fraction(in.DRAMA)
		for j := range g.Residents {
			g.Residents[j].Used = 0
			g.Residents[j].Active, g.Residents[j].Timed = 0, false
		}
		for _, u := range in.Tasks {
			if r := g.Resident(u.Task); r != nil {
				r.Used = u.Used.Clamp()
				if u.Timed {
					r.Active, r.Timed = model.Fraction(u.Active), true
				}
				if r.Peak == 0 && r.Used > 0 {
					r.QuietSince = 0 // it has allocated memory
				}
				if r.Used > r.Peak {
					r.Peak, r.GrewAt = r.Used, s.Now()
					s.predictor.ScheduleShrink(r)
				}
			}
		}
		g.Settle()
		s.predictor.NoteActivity(g)
		s.checkGrants(g)
		s.noteOverran(g)
		g.Read = true
		s.preempter.CheckActivity(g)
		if s.FreeMemory(g) > free || busy && !s.Busy(g) {
			s.MarkDirty() // most samples do not make room for a task
		}
	}
}
