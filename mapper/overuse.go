package mapper

import (
	"cmp"
	"slices"
	"time"

	"carma/internal/units"
)

// What is done about a task that exceeds its grant. All but WatchdogOff raise the grant
// if the card has room.
const (
	WatchdogOff      = "off"
	WatchdogWarn     = "warn"
	WatchdogRelaunch = "relaunch" // and if others need the room, run it again with more
)

// Watchdogs lists the choices.
var Watchdogs = []string{WatchdogOff, WatchdogWarn, WatchdogRelaunch}

// overusePatience is the time for which a task may exceed its grant when others need the
// room: a spike in one sample is over at the next.
const overusePatience = 3 * time.Second

// GrantExceeded records that a task used more on a GPU than its grant. Booked is its
// present grant.
type GrantExceeded struct {
	Task   TaskID      `json:"task"`
	GPU    GPUID       `json:"gpu"`
	Used   units.Bytes `json:"used"`
	Grant  units.Bytes `json:"grant"`
	Booked units.Bytes `json:"booked"`
}

func (GrantExceeded) decisionKind() string { return "overuse" }

// checkGrants finds the tasks on a GPU that exceed their grants.
func (s *State) checkGrants(g *GPU) {
	if s.opt.Watchdog != WatchdogWarn && s.opt.Watchdog != WatchdogRelaunch || s.opt.Booking == BookSamples {
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
			s.decide(GrantExceeded{Task: r.Task, GPU: g.ID, Used: r.Used, Grant: before, Booked: r.Grant})
		}
		if r.Used <= r.Grant {
			r.OverSince = 0
			continue
		}
		if r.OverSince == 0 {
			r.OverSince = max(s.now, 1)
			s.at(r.OverSince.Add(overusePatience), timer{})
		}
	}
}

// enforceGrants stops or suspends tasks that have exceeded their grants for a while, if
// that leaves others without their granted memory. On each GPU it picks the one that
// exceeds its grant most.
func (pre *preempter) enforceGrants() {
	if pre.opt.Watchdog != WatchdogRelaunch {
		return
	}
	for _, g := range pre.placer.shortGPUs() {
		if !pre.short(g) { // no longer short
			continue
		}
		over := slices.DeleteFunc(slices.Clone(g.Residents), func(r Resident) bool {
			return r.OverSince == 0 || pre.now < r.OverSince.Add(overusePatience) || pre.tasks[r.Task].Phase != Running
		})
		if len(over) == 0 || slices.ContainsFunc(g.Residents, func(r Resident) bool { return pre.tasks[r.Task].Overuse || pre.tasks[r.Task].Phase == Suspending }) {
			continue
		}
		worst := slices.MaxFunc(over, func(a, b Resident) int {
			return cmp.Or(cmp.Compare(a.Used-a.Grant, b.Used-b.Grant), cmp.Compare(a.Task, b.Task))
		})
		t, why := pre.tasks[worst.Task], Reason{Code: ReasonOveruse, Have: worst.Used, Of: worst.Grant, GPU: g.Index}
		if !pre.preemptTask(t, why) {
			pre.stopVictim(t, why)
		}
	}
}

// stoppedForOveruse handles the end of an attempt that was stopped for overuse, as after
// a GPU OOM of its own.
func (s *State) stoppedForOveruse(t *Task, a *Attempt) {
	reason := t.StopReason
	t.Overuse, t.StopReason = false, Reason{}
	if reason.stopCode() == ReasonHostOveruse || len(a.Grants) == 0 {
		s.hostOverrun(t, a, a.Code, reason)
		return
	}
	grant := a.Grants[0].Memory
	for _, g := range a.Grants {
		grant = min(grant, g.Memory)
	}
	s.recoverOOM(t, a, oomAttribution{own: true, demand: max(a.Peak, grant), most: s.most(t.GPUs), reason: reason})
}
