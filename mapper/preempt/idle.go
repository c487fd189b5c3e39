package preempt

import (
	"time"

	"carma/internal/units"
	"carma/mapper/ledger"
	"carma/mapper/model"
)

const (
	// IdleWarning is the time from the warning of an idle task to its stop, or a quarter
	// of its idle stop if that is less.
	IdleWarning = 10 * time.Minute
)

// CheckActivity updates since when a GPU has been idle for each of its tasks. If several
// tasks share a busy GPU, only the share of time in which a task's own kernels ran is
// evidence. Coarse activity is no evidence, nor are readings of a GPU with a fault. A
// task that has never had memory on a GPU is idle there whatever the GPU's activity is,
// if no other processes use the GPU.
func (pre *Preempter) CheckActivity(g *model.GPU) {
	still := g.Read && !g.Coarse && g.Fault == "" && g.SMACT <= model.IdleActivity
	for i := range g.Residents {
		r := &g.Residents[i]
		unused := g.Read && g.Fault == "" && r.Peak == 0 && g.OtherProcesses == 0
		switch {
		case !still && !unused && (!g.Read || g.Fault != "" || !r.Timed || r.Active > 0):
			r.QuietSince = 0
		case r.QuietSince == 0:
			r.QuietSince = max(pre.Now(), 1)
		}
		pre.UpdateIdle(pre.TaskByID(r.Task))
	}
}

// ForgetActivity forgets the observed activity, because no samples came for a while: a daemon
// that starts sends GPUsFound first.
func (pre *Preempter) ForgetActivity() {
	for _, g := range pre.GPUList() {
		g.Read = false
		pre.CheckActivity(g)
	}
}

// idleSince returns since when a running task is idle, or 0 if it is busy or that is not
// known. unused: it has never had memory on its GPUs, although it holds them. A task
// without a terminal that had memory and has none now may be between two stages.
func (pre *Preempter) idleSince(t *model.Task) (since units.Instant, unused bool) {
	a := t.Current()
	since, unused = max(a.Started, a.Back, t.Idle.Touched), a.Back == 0 // suspended tasks had memory
	holds := t.Terminal
	for _, grant := range a.Grants {
		r := pre.GPU(grant.GPU).Resident(t.ID)
		if r == nil || r.QuietSince == 0 {
			return 0, false
		}
		since, holds, unused = max(since, r.QuietSince), holds || r.Used > 0, unused && r.Peak == 0
	}
	if !holds && !unused || len(a.Grants) == 0 { // the activity of a task without GPUs is not seen
		return 0, false
	}
	return since, unused
}

// idleStop returns the idle time after which a task is stopped, or 0 for never.
func (pre *Preempter) idleStop(t *model.Task) time.Duration {
	switch {
	case t.IdleStop != 0:
		return max(0, t.IdleStop)
	case t.Terminal:
		return pre.Options().IdleStop
	}
	return pre.Options().IdleYield
}

// UpdateIdle updates whether a task is idle, and sets the next timer.
func (pre *Preempter) UpdateIdle(t *model.Task) {
	if t.Phase != model.Running {
		return
	}
	since, unused := pre.idleSince(t)
	if since == t.Idle.Since {
		t.Idle.Unused = unused
		return
	}
	told := t.Idle.Told || t.Idle.Ends != 0
	t.Idle = model.Idleness{Since: since, Touched: t.Idle.Touched, Unused: unused}
	if told {
		pre.Decide(model.Idle{Task: t.ID, Attempt: t.Last().N})
	}
	if since != 0 {
		pre.HandleIdle(t)
	}
}

// HandleIdle reports, warns or stops an idle task when it is time, and sets a timer for
// the next of these.
func (pre *Preempter) HandleIdle(t *model.Task) {
	if t.Phase != model.Running || t.Idle.Since == 0 {
		return
	}
	next := units.Never
	after := func(d time.Duration) bool { // reports whether d has passed
		at := t.Idle.Since.Add(d)
		if at > pre.Now() {
			next = min(next, at)
		}
		return at <= pre.Now()
	}
	stop := pre.idleStop(t)
	warning := min(IdleWarning, stop/4)
	told := t.Idle
	if pre.Options().IdleReport > 0 && after(pre.Options().IdleReport) {
		t.Idle.Told = true
	}
	switch due := t.Idle.Since.Add(stop); {
	case stop > 0 && t.Idle.Ends >= due: // it is warned, and the options have not changed that
	case stop > 0 && after(stop-warning):
		t.Idle.Ends = max(due, pre.Now().Add(warning)) // it gets the full warning time in any case
	default:
		t.Idle.Ends = 0
	}
	if t.Idle != told {
		pre.Decide(model.Idle{Task: t.ID, Attempt: t.Last().N, Since: t.Idle.Since, Ends: t.Idle.Ends, Unused: t.Idle.Unused})
	}
	switch {
	case t.Idle.Ends > pre.Now():
		next = min(next, t.Idle.Ends)
	case t.Idle.Ends != 0:
		why := model.Reason{Code: model.ReasonIdle, Span: pre.Now().Sub(t.Idle.Since)}
		if pre.displace(displacement{t, why, suspendOrStop}) {
			return
		}
		next = min(next, pre.Now().Add(1)) // it was not stopped then, see Resolve
	}
	pre.SetTimer(next, ledger.Timer{Task: t.ID, Attempt: t.Last().N, Idle: true})
}

// HandleAllIdle checks all idle tasks after the options have changed.
func (pre *Preempter) HandleAllIdle() {
	for _, g := range pre.GPUList() {
		for i := range g.Residents {
			pre.HandleIdle(pre.TaskByID(g.Residents[i].Task))
		}
	}
}
