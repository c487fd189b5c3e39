package recovery

import (
	"slices"

	"carma/internal/units"
	"carma/mapper/model"
)

// oomAttribution says which task or process caused a GPU OOM.
type oomAttribution struct {
	own       bool
	alone     bool         // it had its GPUs exclusively
	demand    units.Bytes  // the most memory the task is known to have wanted on one GPU
	most      units.Bytes  // the most memory it can get on each of its GPUs
	reason    model.Reason // whose memory caused it
	overusers []overuser
}

// overuser is a task that exceeds its grant on a GPU.
type overuser struct {
	gpu  *model.GPU
	task model.TaskID
}

// attributeOOM finds out whether a task that ran out of memory had exceeded its own
// grant. If it had not, and others left no room for that grant, the neighbours that
// exceed theirs or other processes caused the OOM.
func (rc *Recovery) attributeOOM(t *model.Task, a *model.Attempt, demand units.Bytes) oomAttribution {
	grant := a.Grants[0].Memory
	for _, g := range a.Grants {
		grant = min(grant, g.Memory)
	}
	v := oomAttribution{own: true, demand: max(demand, grant), most: rc.MostFor(t.GPUs), alone: rc.GPU(a.Grants[0].GPU).ExclusivelyUsed()}
	if t.Learner && v.demand >= v.most { // it had all there is: by its grant, or because it had no neighbours
		v.alone = !slices.ContainsFunc(a.Grants, func(g model.Grant) bool { return len(rc.GPU(g.GPU).Residents) > 1 })
	}
	if demand > grant {
		v.reason = model.Reason{Code: model.ReasonWantedMore, Need: demand, Have: grant}
		return v
	}
	v.reason = model.Reason{Code: model.ReasonRanOut, Have: grant}
	for _, grant := range a.Grants {
		g := rc.GPU(grant.GPU)
		if rc.FreeMemory(g) >= 0 {
			if o := g.OverranBeside(t.ID, a, rc.Now()); o != nil && v.own {
				v.own = false
				v.reason = model.Reason{Code: model.ReasonNeighbour, Task: o.Task, Have: o.Used, Of: o.Grant, GPU: g.Index}
			}
			continue
		}
		if g.OtherProcesses > 0 {
			v.own = false
			v.reason = model.Reason{Code: model.ReasonForeignUse, Have: g.OtherProcesses, GPU: g.Index}
		}
		if rc.Options().Booking == model.BookSamples {
			continue // without grants no task can exceed one
		}
		for _, r := range g.Residents {
			if r.Task != t.ID && r.Used > r.Grant {
				v.own = false
				v.reason = model.Reason{Code: model.ReasonNeighbour, Task: r.Task, Have: r.Used, Of: r.Grant, GPU: g.Index}
				v.overusers = append(v.overusers, overuser{g, r.Task})
			}
		}
	}
	return v
}
