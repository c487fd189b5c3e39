package mapper

import (
	"slices"

	"carma/internal/units"
)

// attributedOOM says who is to blame for a GPU OOM.
type oomAttribution struct {
	own       bool
	alone     bool        // it had its GPUs for itself
	demand    units.Bytes // the most the task is known to have wanted on one GPU
	most      units.Bytes // the most there is for it on each of its GPUs
	reason    Reason      // whose memory it was
	overusers []overuser
}

// overuser is a task that exceeds its grant on a GPU.
type overuser struct {
	gpu  *GPU
	task TaskID
}

// attributeOOM finds out whether a task that ran out of memory was over its own
// grant. If it was not, and others left no room for that grant, the neighbours
// that exceed theirs or a foreign process are to blame.
func (s *State) attributeOOM(t *Task, a *Attempt, demand units.Bytes) oomAttribution {
	grant := a.Grants[0].Memory
	for _, g := range a.Grants {
		grant = min(grant, g.Memory)
	}
	v := oomAttribution{own: true, demand: max(demand, grant), most: s.most(t.GPUs), alone: s.byID[a.Grants[0].GPU].alone()}
	if t.Learner && v.demand >= v.most { // it had all there is: granted, or for want of neighbours
		v.alone = !slices.ContainsFunc(a.Grants, func(g Grant) bool { return len(s.byID[g.GPU].Residents) > 1 })
	}
	if demand > grant {
		v.reason = Reason{Code: ReasonWantedMore, Need: demand, Have: grant}
		return v
	}
	v.reason = Reason{Code: ReasonRanOut, Have: grant}
	for _, grant := range a.Grants {
		g := s.byID[grant.GPU]
		if s.free(g) >= 0 {
			if o := g.overranBeside(t.ID, a, s.now); o != nil && v.own {
				v.own = false
				v.reason = Reason{Code: ReasonNeighbour, Task: o.Task, Have: o.Used, Of: o.Grant, GPU: g.Index}
			}
			continue
		}
		if g.OtherProcesses > 0 {
			v.own = false
			v.reason = Reason{Code: ReasonForeignUse, Have: g.OtherProcesses, GPU: g.Index}
		}
		if s.opt.Booking == BookSamples {
			continue // nobody has a grant to be over
		}
		for _, r := range g.Residents {
			if r.Task != t.ID && r.Used > r.Grant {
				v.own = false
				v.reason = Reason{Code: ReasonNeighbour, Task: r.Task, Have: r.Used, Of: r.Grant, GPU: g.Index}
				v.overusers = append(v.overusers, overuser{g, r.Task})
			}
		}
	}
	return v
}

// growGrant raises the grant of a task that exceeds it to growFactor times what
// it uses, as far as the card has room.
func (s *State) growGrant(o overuser) {
	g, t := o.gpu, s.tasks[o.task]
	r, bookable := g.resident(o.task), s.bookable(g)
	if s.recorded.hasRegrants(s.format) {
		return
	}
	s.reclaim(g, r.Task, r.Used.Scale(growFactor)-r.Grant-(bookable-g.OtherProcesses-g.Reserved))
	grow := min(r.Used.Scale(growFactor)-r.Grant, bookable-g.OtherProcesses-g.Reserved)
	if grow <= 0 {
		return
	}
	g.Bookable = bookable
	s.regrant(t, g, r.Grant+grow)
	t.NextGrant = max(t.NextGrant, min(r.Grant, s.mostBookable().of(t.GPUs)))
}

// most is the most memory that n GPUs of one machine all have for one task.
// Where so many are not there any more, those that went missing under their
// tasks count.
func (s *State) most(n int) units.Bytes {
	if most := s.mostBookable().of(n); most >= 0 {
		return most
	}
	return s.ceiling(func(g *GPU) units.Bytes { return max(0, g.Capacity-s.opt.Headroom) }).of(n)
}

// stagedFloor is the free memory that AEGIS asks for after the first GPU OOM;
// twice as much after the second.
const stagedFloor = 10 * units.GiB

// What a task gets after its own GPU OOM: after the first, its demand times
// oomFactor plus oomExtra; after each further one, its need times oomAgainFactor.
// growFactor is for a neighbour that used more than its grant.
const (
	oomFactor      = 1.25
	oomExtra       = units.GiB
	oomAgainFactor = 1.5
	growFactor     = 1.1
)

// maxBackoffDoublings bounds the back-off: 64 times the option.
const maxBackoffDoublings = 6
