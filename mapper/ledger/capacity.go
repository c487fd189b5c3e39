package ledger

import (
	"cmp"
	"slices"

	"carma/internal/units"
	"carma/mapper/model"
)

// rescheduleProbe returns the earliest instant at which a shut GPU may be probed.
func (l *Ledger) rescheduleProbe() units.Instant {
	next := units.Never
	for _, g := range l.gpus {
		if g.Breaker.Open(l.now) {
			next = min(next, g.Breaker.Test)
		}
	}
	return next
}

// OpenState holds what freeSummary needs to know about a GPU.
type OpenState struct {
	Open, Idle bool
	FreeMemory units.Bytes
}

// ShortOfMemory reports whether the tasks on a GPU have taken more memory than there is.
func (l *Ledger) ShortOfMemory(g *model.GPU) bool { return l.FreeMemory(g) < 0 && len(g.Residents) > 1 }

// OpenState returns what the summary of free GPUs needs to know of a GPU.
func (l *Ledger) OpenState(g *model.GPU) (o OpenState) {
	if l.RejectAny(g) == "" && !g.ExclusivelyUsed() && !l.Full(g) {
		o = OpenState{true, g.Idle(), l.FreeMemory(g)}
	}
	return o
}

// RejectAny checks the preconditions that do not depend on the task.
func (l *Ledger) RejectAny(g *model.GPU) model.Rule {
	switch {
	case g.Missing || g.FaultReason() != "":
		return model.RuleFault
	case g.Cordon != nil:
		return model.RuleClosed
	case g.Breaker.Open(l.now):
		return model.RuleSick
	case l.FreeMemory(g) < l.opt.MinFree:
		return model.RuleMinFree
	case l.Busy(g):
		return model.RuleSMACT
	case g.Warming(l.now):
		return model.RuleWarmUp
	}
	return ""
}

// NeedOn returns the memory that must be free on a GPU to place a task there.
func (in *inventory) NeedOn(t *model.Task, g *model.GPU) units.Bytes {
	if g.Idle() {
		return t.NeedOn(g)
	}
	return t.NeedOn(g) + in.opt.Margin
}

// Busy reports whether the activity of a GPU is above the caps.
func (in *inventory) Busy(g *model.GPU) bool {
	o := &in.opt
	if o.SMACTCap == 0 || g.Idle() || g.SMACT < o.SMACTCap {
		return false
	}
	return o.SMOCCCap == 0 && o.DRAMACap == 0 ||
		o.SMOCCCap > 0 && g.SMOCC >= o.SMOCCCap || o.DRAMACap > 0 && g.DRAMA >= o.DRAMACap
}

// Full reports whether a GPU has as many tasks as it may have.
func (in *inventory) Full(g *model.GPU) bool {
	return in.opt.MaxTasks > 0 && len(g.Residents) >= in.opt.MaxTasks
}

// Learns reports whether a task that is not launched yet is a learner.
func (in *inventory) Learns(t *model.Task) bool {
	return t.Estimate.WholeGPU && !t.Estimate.Large && !t.Exclusive && in.opt.LearnMemory > 0 && in.opt.Booking != model.BookSamples && !in.idleOnly
}

// LearnerNeed returns the memory that must be free on each of n GPUs for a learner.
func (l *Ledger) LearnerNeed(n int) units.Bytes {
	return max(0, l.MostBookable().Of(n)) / LearnerPart
}

// MostFor returns the most memory that each of n GPUs of one machine has for one task. If no
// machine has n GPUs any more, GPUs that went missing under their tasks count too.
func (l *Ledger) MostFor(n int) units.Bytes {
	if most := l.MostBookable().Of(n); most >= 0 {
		return most
	}
	return l.Ceiling(func(g *model.GPU) units.Bytes { return max(0, g.Capacity-l.opt.Headroom) }).Of(n)
}

// ceiling[n-1] is the most memory that each of n GPUs of one machine has.
type ceiling []units.Bytes

// Of returns the ceiling for n GPUs, or -1 if no machine has n.
func (c ceiling) Of(n int) units.Bytes {
	if n < 1 || n > len(c) {
		return -1
	}
	return c[n-1]
}

// Ceiling computes a ceiling from the memory of each GPU; a negative value excludes the
// GPU. A MIG instance counts only for one GPU.
func (in *inventory) Ceiling(room func(*model.GPU) units.Bytes) ceiling {
	all := ceiling{}
	for rest := in.gpus; len(rest) > 0; { // they are sorted by machine
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

// MostBookable returns the ceiling of the memory that can be allocated on empty GPUs. It
// changes with the GPUs present and the headroom.
func (l *Ledger) MostBookable() ceiling {
	if l.emptyCeiling == nil {
		l.emptyCeiling = l.Ceiling(l.Bookable)
	}
	return l.emptyCeiling
}

// Bookable returns the memory that can be allocated on a GPU when it is empty.
func (in *inventory) Bookable(g *model.GPU) units.Bytes {
	if g.Missing {
		return -1
	}
	return g.Capacity - in.opt.Headroom
}

// Room returns the memory that a GPU, in its present state, could give to a task without
// its residents, or a negative value if none.
func (l *Ledger) Room(g *model.GPU, alone bool) units.Bytes {
	return l.roomBeside(g, alone, g.OtherProcesses)
}

// RoomFor returns the room of a GPU for one task.
func (l *Ledger) RoomFor(t *model.Task, g *model.GPU) units.Bytes {
	return l.roomBeside(g, l.RunsAlone(t), g.ForeignTo(t))
}

func (l *Ledger) roomBeside(g *model.GPU, alone bool, foreign units.Bytes) units.Bytes {
	room := l.Bookable(g) - foreign
	if g.FaultReason() != "" || g.Cordon != nil || g.Breaker.Open(l.now) || room < l.opt.MinFree || alone && g.ForeignMemory() > l.opt.Headroom {
		return -1
	}
	return room
}

// CanFit reports whether a task would fit if nothing else ran, with the GPUs in their
// present state. A task that would not waits for a GPU to return and blocks no other.
func (l *Ledger) CanFit(t *model.Task) bool {
	if !l.hostCanFit(t) {
		return false
	}
	if t.GPUs == 0 {
		return true
	}
	if t.ResumesInPlace() {
		return !slices.ContainsFunc(t.Suspension.From, func(from model.Grant) bool {
			g := l.byID[from.GPU]
			return g == nil || l.RoomFor(t, g) < max(t.NextGrant, 1)
		})
	}
	alone, i := l.RunsAlone(t), 0
	if alone {
		i = 1
	}
	if l.tested <= l.now {
		l.CapacityChanged()
	}
	if l.ceilings[i] == nil {
		l.tested = l.rescheduleProbe()
		l.ceilings[i] = l.Ceiling(func(g *model.GPU) units.Bytes { return l.Room(g, alone) })
	}
	return l.ceilings[i].Of(t.GPUs) >= max(t.NextGrant, 1)
}

// FreeFor returns the free memory of a GPU for a task, its own residue included.
func (l *Ledger) FreeFor(t *model.Task, g *model.GPU) units.Bytes {
	return l.FreeMemory(g) + g.ResidueOf(t)
}

// LearnerPart: a learner starts on a card with one part in learnerPart free.
const LearnerPart = 6
