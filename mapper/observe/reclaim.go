package observe

import (
	"carma/internal/units"
	"carma/mapper/model"
)

// Shrink cuts the grants of tasks whose memory has not grown for a while, so that an
// excessive estimate does not keep others out for a whole run.
func (ob *Observer) Shrink() {
	if !ob.GrantsDue() {
		return
	}
	for _, g := range ob.GPUList() {
		for i := range g.Residents {
			r := &g.Residents[i]
			if r.ShrinkAt == 0 || r.ShrinkAt > ob.Now() {
				if r.ShrinkAt > 0 {
					ob.CheckGrantsBy(r.ShrinkAt)
				}
				continue
			}
			r.ShrinkAt = 0
			if ob.Now() < ob.predictor.ShrinkTime(r) {
				ob.predictor.ScheduleShrink(r)
				continue
			}
			ob.cutGrant(g, r)
		}
	}
}

// cutGrant cuts the grant of a task whose memory has not grown to what it needs.
func (ob *Observer) cutGrant(g *model.GPU, r *model.Resident) {
	if !ob.predictor.CanShrink(r) {
		return
	}
	if r.Learning {
		r.Learning, r.SettledAt = false, r.Peak
	}
	ob.users.Regrant(ob.TaskByID(r.Task), g, ob.predictor.ShrunkGrant(r))
}

// reclaim cuts the margins of learners on a GPU for a task that needs more there: no task
// has asked for these margins.
func (ob *Observer) reclaim(g *model.GPU, forTask model.TaskID, missing units.Bytes) {
	for i := range g.Residents {
		r := &g.Residents[i]
		t := ob.TaskByID(r.Task)
		least := max(r.Peak.Scale(reclaimedFactor), r.Peak+reclaimedExtra)
		if missing <= 0 || r.Task == forTask || r.Exclusive || r.Learning || r.Peak == 0 || !t.Learner || least >= r.Grant {
			continue
		}
		cut := min(r.Grant-least, missing)
		missing -= cut
		ob.users.Regrant(t, g, r.Grant-cut)
	}
}

// The margin that is left of a learner's grant above its peak if a neighbour needs the
// room.
const (
	reclaimedFactor = 1.01
	reclaimedExtra  = 128 * units.MiB
)
