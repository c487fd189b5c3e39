package mapper

import (
	"carma/mapper/ledger"
	"carma/mapper/model"
	"carma/mapper/preempt"
)

// checkGrants finds the tasks on a GPU that exceed their grants.
func (s *State) checkGrants(g *model.GPU) {
	if s.Ledger.Options().Watchdog != model.WatchdogWarn && s.Ledger.Options().Watchdog != model.WatchdogRelaunch || s.Ledger.Options().Booking == model.BookSamples {
		return
	}
	for i := range g.Residents {
		r := &g.Residents[i]
		if r.Used <= r.Grant || r.Exclusive {
			r.OverSince = 0
			continue
		}
		before := r.Grant
		s.growGrant(overuser{g, r.Task})
		if r.OverSince == 0 || r.Grant > before {
			s.Decide(model.GrantExceeded{Task: r.Task, GPU: g.ID, Used: r.Used, Grant: before, Booked: r.Grant})
		}
		if r.Used <= r.Grant {
			r.OverSince = 0
			continue
		}
		if r.OverSince == 0 {
			r.OverSince = max(s.Now(), 1)
			s.SetTimer(r.OverSince.Add(preempt.OverusePatience), ledger.Timer{})
		}
	}
}

// stoppedForOveruse handles the end of an attempt that was stopped for overuse, as after
// a GPU OOM of its own.
func (s *State) stoppedForOveruse(t *model.Task, a *model.Attempt) {
	reason := t.StopReason
	t.Overuse, t.StopReason = false, model.Reason{}
	if reason.StopCode() == model.ReasonHostOveruse || len(a.Grants) == 0 {
		s.hostOverrun(t, a, a.Code, reason)
		return
	}
	grant := a.Grants[0].Memory
	for _, g := range a.Grants {
		grant = min(grant, g.Memory)
	}
	s.recoverOOM(t, a, oomAttribution{own: true, demand: max(a.Peak, grant), most: s.MostFor(t.GPUs), reason: reason})
}
