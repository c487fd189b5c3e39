package mapper

import (
	"cmp"
	"slices"

	"carma/internal/units"
	"carma/mapper/model"
)

func (s *State) found(ev model.GPUsFound) {
	next := s.nextInRing()
	seen, boots := map[model.GPUID]bool{}, map[string]string{}
	var shared []*model.GPU // GPUs whose sharing has changed
	for _, info := range ev.GPUs {
		seen[info.ID], boots[info.Node] = true, info.Boot
		info.Capacity = info.Capacity.Clamp()
		if g := s.byID[info.ID]; g != nil {
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
		s.byID[info.ID] = g
		s.gpus = append(s.gpus, g)
	}
	for _, g := range slices.Clone(s.gpus) {
		if !seen[g.ID] {
			g.Missing = true
			s.booted(g, boots[g.Node])
			s.placer.forgetMissing(g)
		}
	}
	slices.SortFunc(s.gpus, compareGPUs)
	s.placer.setRing(next)
	s.inventoryChanged()
	s.preempter.clearIdle()
	s.placer.findMPSDomains()
	s.placer.predict(shared)
	s.dirty = true
}

// compareGPUs is the order of the ledger: by machine, then index.
func compareGPUs(a, b *model.GPU) int {
	return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Index, b.Index), cmp.Compare(a.ID, b.ID))
}

// forgetMissing removes a missing GPU that has no task, is not cordoned and has no
// persistent fault. It may have been removed already. A GPU on which a task must resume
// is kept, and so is one with the residue of a suspended task, which is there again when
// the GPU is found.
func (pl *placer) forgetMissing(g *model.GPU) {
	if !g.Missing || !g.Idle() || len(g.Residue) > 0 || pl.isOriginalGPU(g) || g.Cordon != nil || g.Persistent != nil || pl.byID[g.ID] != g {
		return
	}
	next := pl.nextInRing()
	delete(pl.byID, g.ID)
	pl.gpus = slices.DeleteFunc(pl.gpus, func(x *model.GPU) bool { return x == g })
	pl.setRing(next)
}

// nextInRing returns the next GPU of round-robin, or nil; setRing restores this position
// after the list of GPUs has changed.
func (l *ledger) nextInRing() *model.GPU {
	if l.ring < len(l.gpus) {
		return l.gpus[l.ring]
	}
	return nil
}

func (pl *placer) setRing(next *model.GPU) {
	for i, g := range pl.gpus {
		g.SetPos(i)
	}
	pl.cache.dirty.valid = false
	pl.cache.forgotten, pl.cache.clock = pl.cache.clock, pl.cache.clock+1 // cached results of tasks name GPUs in ledger order
	pl.ring = max(0, slices.Index(pl.gpus, next))
}

func (s *State) engineChanged(ev model.EngineChanged) {
	s.breakers.engineDown = model.Reason{}
	if ev.Up {
		s.breakers.probeAgain()
	} else {
		s.breakers.engineDown = model.Reason{Code: model.ReasonEngineDown, Text: ev.Reason}
	}
	s.dirty = true
}

func (s *State) sampled(ev model.Sampled) {
	s.preempter.hostSampled(ev.Hosts)
	for i := range ev.GPUs {
		in := &ev.GPUs[i]
		g := s.byID[in.ID]
		if g == nil {
			continue
		}
		free, busy := s.free(g), s.busy(g)
		foreign, behind := in.OtherProcesses.Clamp(), s.recordResidue(in.Tasks)
		for _, b := range behind {
			foreign = (foreign + b.Used).Clamp()
		}
		if foreign != g.OtherProcesses || in.Fault != g.Fault || !slices.Equal(behind, g.Residue) {
			g.OtherProcesses, g.Fault, g.Residue = foreign, in.Fault, behind
			s.placer.reconsider(g) // the tasks of residues may see it differently
			s.capacityChanged()
			s.dirty = true
		}
		s.setPersistentFault(g, in)
		g.Used = in.Used.Clamp()
		s.predictor.observe(g)
		s.predictor.readAnew(g, in.Coarse)
		g.SMACT, g.SMOCC, g.DRAMA = score(in.SMACT), score(in.SMOCC), score(in.DRAMA)
		for j := range g.Residents {
			g.Residents[j].Used = 0
			g.Residents[j].Active, g.Residents[j].Timed = 0, false
		}
		for _, u := range in.Tasks {
			if r := g.Resident(u.Task); r != nil {
				r.Used = u.Used.Clamp()
				if u.Timed {
					r.Active, r.Timed = score(u.Active), true
				}
				if r.Peak == 0 && r.Used > 0 {
					r.QuietSince = 0 // it has allocated memory
				}
				if r.Used > r.Peak {
					r.Peak, r.GrewAt = r.Used, s.now
					s.predictor.shrinkLater(r)
				}
			}
		}
		g.Settle()
		s.learner.busyWith(g)
		s.checkGrants(g)
		s.noteOverran(g)
		g.Read = true
		s.preempter.checkIdle(g)
		if s.free(g) > free || busy && !s.busy(g) {
			s.dirty = true // most samples do not make room for a task
		}
	}
}

// score limits a monitor's figure to 0 to 1; NaN is 0.
func score(f float64) float64 {
	if !(f > 0) {
		return 0
	}
	return min(f, 1)
}

// ceiling[n-1] is the most memory that each of n GPUs of one machine has.
type ceiling []units.Bytes

// of returns the ceiling for n GPUs, or -1 if no machine has n.
func (c ceiling) of(n int) units.Bytes {
	if n < 1 || n > len(c) {
		return -1
	}
	return c[n-1]
}

// ceiling computes a ceiling from the memory of each GPU; a negative value excludes the
// GPU. A MIG instance counts only for one GPU.
func (l *ledger) ceiling(room func(*model.GPU) units.Bytes) ceiling {
	all := ceiling{}
	for rest := l.gpus; len(rest) > 0; { // they are sorted by machine
		node := rest[0].Node
		var rooms []units.Bytes
		part := units.Bytes(-1)
		for len(rest) > 0 && rest[0].Node == node {
			switch r := room(rest[0]); {
			case r < 0:
			case rest[0].MIG:
				part = max(part, r)
			default:
				rooms = append(rooms, r)
			}
			rest = rest[1:]
		}
		if part >= 0 && len(rooms) == 0 {
			rooms = append(rooms, part)
		}
		slices.SortFunc(rooms, func(a, b units.Bytes) int { return cmp.Compare(b, a) })
		for i, r := range rooms {
			if i == len(all) {
				all = append(all, r)
			}
			all[i] = max(all[i], r)
		}
		if part >= 0 {
			all[0] = max(all[0], part)
		}
	}
	return all
}

// mostBookable returns the ceiling of the memory that can be allocated on empty GPUs. It
// changes with the GPUs present and the headroom.
func (l *ledger) mostBookable() ceiling {
	if l.emptyCeiling == nil {
		l.emptyCeiling = l.ceiling(l.bookable)
	}
	return l.emptyCeiling
}

// bookable returns the memory that can be allocated on a GPU when it is empty.
func (l *ledger) bookable(g *model.GPU) units.Bytes {
	if g.Missing {
		return -1
	}
	return g.Capacity - l.opt.Headroom
}

// room returns the memory that a GPU, in its present state, could give to a task without
// its residents, or a negative value if none.
func (l *ledger) room(g *model.GPU, alone bool) units.Bytes {
	return l.roomBeside(g, alone, g.OtherProcesses)
}

// roomFor returns the room of a GPU for one task.
func (l *ledger) roomFor(t *model.Task, g *model.GPU) units.Bytes {
	return l.roomBeside(g, l.alone(t), g.ForeignTo(t))
}

func (l *ledger) roomBeside(g *model.GPU, alone bool, foreign units.Bytes) units.Bytes {
	room := l.bookable(g) - foreign
	if g.FaultReason() != "" || g.Cordon != nil || g.Breaker.Open(l.now) || room < l.opt.MinFree || alone && g.ForeignMemory() > l.opt.Headroom {
		return -1
	}
	return room
}

// canFit reports whether a task would fit if nothing else ran, with the GPUs in their
// present state. A task that would not waits for a GPU to return and blocks no other.
func (l *ledger) canFit(t *model.Task) bool {
	if !l.hostCanFit(t) {
		return false
	}
	if t.GPUs == 0 {
		return true
	}
	if t.ResumesInPlace() {
		return !slices.ContainsFunc(t.Suspension.From, func(from model.Grant) bool {
			g := l.byID[from.GPU]
			return g == nil || l.roomFor(t, g) < max(t.NextGrant, 1)
		})
	}
	alone, i := l.alone(t), 0
	if alone {
		i = 1
	}
	if l.tested <= l.now {
		l.capacityChanged()
	}
	if l.ceilings[i] == nil {
		l.tested = l.rescheduleProbe()
		l.ceilings[i] = l.ceiling(func(g *model.GPU) units.Bytes { return l.room(g, alone) })
	}
	return l.ceilings[i].of(t.GPUs) >= max(t.NextGrant, 1)
}
