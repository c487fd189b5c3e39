package mapper

import (
	"carma/internal/units"
	"carma/mapper/model"
)

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
			if s.Now() < s.predictor.ShrinkTime(r) {
				s.predictor.ScheduleShrink(r)
				continue
			}
			s.cutGrant(g, r)
		}
	}
}

func (s *State) cutGrant(g *model.GPU, r *model.Resident) {
	if !s.predictor.CanShrink(r) {
		return
	}
	if r.Learning {
		r.Learning, r.SettledAt = false, r.Peak
	}
	s.users.Regrant(s.TaskByID(r.Task), g, s.predictor.ShrunkGrant(r))
}

// reclaim cuts the margins of learners on a GPU for a task that needs more there: no task
// has asked for these margins.
func (s *State) reclaim(g *model.GPU, forTask model.TaskID, missing units.Bytes) {
	for i := range g.Residents {
		r := &g.Residents[i]
		t := s.TaskByID(r.Task)
		least := max(r.Peak.Scale(reclaimedFactor), r.Peak+reclaimedExtra)
		if missing <= 0 || r.Task == forTask || r.Exclusive || r.Learning || r.Peak == 0 || !t.Learner || least >= r.Grant {
			continue
		}
		cut := min(r.Grant-least, missing)
		missing -= cut
		s.users.Regrant(t, g, r.Grant-cut)
	}
}

// The margin that is left of a learner's grant above its peak if a neighbour needs the
// room.
const (
	reclaimedFactor = 1.01
	reclaimedExtra  = 128 * units.MiB
)
