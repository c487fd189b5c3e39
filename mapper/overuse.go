package mapper

import (
	"cmp"
	"slices"
	"time"

	"carma/mapper/ledger"
	"carma/mapper/model"
)

// overusePatience is the time for which a task may exceed its grant when others need the
// room: a spike in one sample is over at the next.
const overusePatience = 3 * time.Second

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
			s.SetTimer(r.OverSince.Add(overusePatience), ledger.Timer{})
		}
	}
}

// enforceGrants stops or suspends tasks that have exceeded their grants for a while, if
// that leaves others without their granted memory. On each GPU it picks the one that
// exceeds its grant most.
func (pre *preempter) enforceGrants() {
	if pre.Options().Watchdog != model.WatchdogRelaunch {
		return
	}
	for _, g := range pre.placer.ShortGPUs() {
		if !pre.ShortOfMemory(g) { // no longer short
			continue
		}
		over := slices.DeleteFunc(slices.Clone(g.Residents), func(r model.Resident) bool {
			return r.OverSince == 0 || pre.Now() < r.OverSince.Add(overusePatience) || pre.TaskByID(r.Task).Phase != model.Running
		})
		if len(over) == 0 || slices.ContainsFunc(g.Residents, func(r model.Resident) bool {
			return pre.TaskByID(r.Task).Overuse || pre.TaskByID(r.Task).Phase == model.Suspending
		}) {
			continue
		}
		worst := slices.MaxFunc(over, func(a, b model.Resident) int {
			return cmp.Or(cmp.Compare(a.Used-a.Grant, b.Used-b.Grant), cmp.Compare(a.Task, b.Task))
		})
		t, why := pre.TaskByID(worst.Task), model.Reason{Code: model.ReasonOveruse, Have: worst.Used, Of: worst.Grant, GPU: g.Index}
		if !pre.preemptTask(t, why) {
			pre.stopVictim(t, why)
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
