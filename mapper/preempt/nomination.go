package preempt

import (
	"carma/mapper/ledger"
	"carma/mapper/model"
)

// ClearNominations ends the nominations of a task.
func (pre *Preempter) ClearNominations(t *model.Task) {
	if !pre.Options().Preempts() {
		return
	}
	for _, g := range pre.GPUList() {
		if g.NominatedFor == t.ID {
			g.NominatedFor = 0
			pre.placer.NominationChanged(g)
			pre.released = true
			pre.MarkDirty()
		}
	}
}

// ClearAllNominations ends all nominations, because preemption is off.
func (pre *Preempter) ClearAllNominations() {
	for _, g := range pre.GPUList() {
		g.NominatedFor = 0
	}
}

// nominateOriginal nominates the GPUs on which a suspended task must resume for it, if
// their residents cannot be preempted: otherwise other tasks would repeatedly start
// there.
func (pre *Preempter) nominateOriginal(t *model.Task) {
	if !t.ResumesInPlace() {
		return
	}
	t.WayAt = pre.Now()
	pre.SetTimer(pre.Now().Add(PreemptRetry), ledger.Timer{})
	for _, from := range t.Suspension.From { // all or none: two tasks that need the same GPUs would wait for each other
		if g := pre.GPU(from.GPU); g == nil || g.NominatedFor != 0 && g.NominatedFor != t.ID {
			return
		}
	}
	for _, from := range t.Suspension.From {
		g := pre.GPU(from.GPU)
		g.NominatedFor = t.ID
		pre.placer.NominationChanged(g)
	}
}

// ExpireNominations ends the nominations of tasks for which no task is being suspended
// any more, and reports whether there were any. mayStart reports whether no quota and no
// full namespace keeps a waiting task from starting.
func (pre *Preempter) ExpireNominations(mayStart func(*model.Task) bool) (ended bool) {
	if !pre.Options().Preempts() {
		return false
	}
	for _, g := range pre.GPUList() {
		if g.NominatedFor == 0 || pre.LeavingForOther(g.NominatedFor) || pre.resumesOn(g, mayStart) {
			continue
		}
		g.NominatedFor, ended = 0, true
		pre.placer.NominationChanged(g)
	}
	return ended
}

// resumesOn reports whether a GPU is kept for a suspended task that had it, see
// nominateOriginal, and the task could resume if the residents of its GPUs left.
func (pre *Preempter) resumesOn(g *model.GPU, mayStart func(*model.Task) bool) bool {
	t := pre.TaskByID(g.NominatedFor)
	return t != nil && t.Waiting() && t.ResumesInPlace() && pre.SuspendedTooLong(t) && t.Suspension.Includes(g.ID) &&
		pre.CanFit(t) && !pre.reserve.IsBarred(t) && mayStart(t)
}
