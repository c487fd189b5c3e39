package preempt

import (
	"cmp"
	"slices"
	"time"

	"carma/mapper/model"
)

// GuardHost stops a task on a machine that runs low on memory: the one that exceeds its
// allocation most.
func (pre *Preempter) GuardHost(h *model.Host) {
	if !h.Known || pre.Options().Watchdog != model.WatchdogRelaunch || h.Available <= 0 || h.Available >= h.Low()/2 {
		return
	}
	worst := -1
	for i := range h.Residents {
		r := &h.Residents[i]
		t := pre.TaskByID(r.Task)
		if t.Overuse {
			return // one at a time: its memory is about to come back
		}
		if over := r.Used - r.Memory; over > 0 && t.Phase == model.Running && (worst < 0 || over > h.Residents[worst].Used-h.Residents[worst].Memory) {
			worst = i
		}
	}
	if worst >= 0 {
		r := &h.Residents[worst]
		pre.Stop(pre.TaskByID(r.Task), model.Reason{Code: model.ReasonHostOveruse, Have: r.Used, Of: r.Memory})
	}
}

// OverusePatience is the time for which a task may exceed its grant when others need the
// room: a spike in one sample is over at the next.
const OverusePatience = 3 * time.Second

// EnforceGrants stops or suspends tasks that have exceeded their grants for a while, if
// that leaves others without their granted memory. On each GPU it picks the one that
// exceeds its grant most.
func (pre *Preempter) EnforceGrants() {
	if pre.Options().Watchdog != model.WatchdogRelaunch {
		return
	}
	for _, g := range pre.placer.ShortGPUs() {
		if !pre.ShortOfMemory(g) { // no longer short
			continue
		}
		over := slices.DeleteFunc(slices.Clone(g.Residents), func(r model.Resident) bool {
			return r.OverSince == 0 || pre.Now() < r.OverSince.Add(OverusePatience) || pre.TaskByID(r.Task).Phase != model.Running
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
		pre.displace(displacement{t, why, suspendOrStop})
	}
}
