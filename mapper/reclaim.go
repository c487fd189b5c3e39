package mapper

import (
	"carma/internal/units"
	"carma/mapper/ledger"
	"carma/mapper/model"
)

// A grant is cut to the highest observed memory times shrinkFactor, or plus shrinkLeast
// if that is more: samples miss short spikes.
const (
	shrinkFactor = 1.05
	shrinkLeast  = 256 * units.MiB
)

// shrunk returns the memory to which a resident's grant would be cut.
func (pr *predictor) shrunk(r *model.Resident) units.Bytes {
	if pr.TaskByID(r.Task).Learner {
		return r.Peak.Scale(pr.growth.margin()) + settledExtra
	}
	return max(r.Peak.Scale(shrinkFactor), r.Peak+shrinkLeast)
}

// shrinksAt returns the instant at which a resident's grant may be cut if its memory does
// not grow.
func (pr *predictor) shrinksAt(r *model.Resident) units.Instant {
	if r.Learning {
		return pr.settlesAt(r)
	}
	return r.GrewAt.Add(pr.Options().Shrink)
}

// shrinks reports whether a resident's grant can be cut. It cannot before its memory was
// sampled.
func (pr *predictor) shrinks(r *model.Resident) bool {
	after := pr.Options().Shrink
	if r.Learning {
		after = pr.Options().LearnMemory
	}
	return after > 0 && r.Peak > 0 && !r.Exclusive && pr.shrunk(r) < r.Grant
}

// shrinkLater schedules the check of a resident's grant.
func (pr *predictor) shrinkLater(r *model.Resident) {
	if r.ShrinkAt != 0 || !pr.shrinks(r) {
		return
	}
	r.ShrinkAt = pr.shrinksAt(r)
	pr.CheckGrantsBy(r.ShrinkAt)
	pr.SetTimer(r.ShrinkAt, ledger.Timer{})
}

// shrink cuts the grants of tasks whose memory has not grown for a while, so that an
// excessive estimate does not keep others out for a whole run.
func (s *State) shrink() {
	if !s.GrantsDue() {
		return
	}
	for _, g := range s.GPUList() {
		for i := range g.Residents {
			r := &g.Residents[i]
			if r.ShrinkAt == 0 || r.ShrinkAt > s.Now() {
				if r.ShrinkAt > 0 {
					s.CheckGrantsBy(r.ShrinkAt)
				}
				continue
			}
			r.ShrinkAt = 0
			if s.Now() < s.predictor.shrinksAt(r) {
				s.predictor.shrinkLater(r)
				continue
			}
			s.cutGrant(g, r)
		}
	}
}

func (s *State) cutGrant(g *model.GPU, r *model.Resident) {
	if !s.predictor.shrinks(r) {
		return
	}
	if r.Learning {
		r.Learning, r.SettledAt = false, r.Peak
	}
	s.users.Regrant(s.TaskByID(r.Task), g, s.predictor.shrunk(r))
}
