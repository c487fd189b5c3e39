package observe

import (
	"carma/mapper/ledger"
	"carma/mapper/model"
	"carma/mapper/preempt"
)

// checkGrants finds the tasks on a GPU that exceed their grants.
func (ob *Observer) checkGrants(g *model.GPU) {
	if ob.Options().Watchdog != model.WatchdogWarn && ob.Options().Watchdog != model.WatchdogRelaunch || ob.Options().Booking == model.BookSamples {
		return
	}
	for i := range g.Residents {
		r := &g.Residents[i]
		if r.Used <= r.Grant || r.Exclusive {
			r.OverSince = 0
			continue
		}
		before := r.Grant
		ob.GrowGrant(g, r.Task)
		if r.OverSince == 0 || r.Grant > before {
			ob.Decide(model.GrantExceeded{Task: r.Task, GPU: g.ID, Used: r.Used, Grant: before, Booked: r.Grant})
		}
		if r.Used <= r.Grant {
			r.OverSince = 0
			continue
		}
		if r.OverSince == 0 {
			r.OverSince = max(ob.Now(), 1)
			ob.SetTimer(r.OverSince.Add(preempt.OverusePatience), ledger.Timer{})
		}
	}
}

// GrowGrant raises the grant of a task that exceeds it to [preempt.GrowFactor] times its use, as
// far as the card has room.
func (ob *Observer) GrowGrant(g *model.GPU, id model.TaskID) {
	t, r, bookable := ob.TaskByID(id), g.Resident(id), ob.Bookable(g)
	ob.reclaim(g, r.Task, r.Used.Scale(preempt.GrowFactor)-r.Grant-(bookable-g.OtherProcesses-g.Reserved))
	grow := min(r.Used.Scale(preempt.GrowFactor)-r.Grant, bookable-g.OtherProcesses-g.Reserved)
	if grow <= 0 {
		return
	}
	if !ob.users.Regrant(t, g, r.Grant+grow) {
		return
	}
	g.Bookable = bookable
	t.NextGrant = max(t.NextGrant, min(r.Grant, ob.MostBookable().Of(t.GPUs)))
}
