package reserve

import (
	"time"

	"carma/mapper/model"
)

// fillLeast is the shortest expected remaining time of a reservation for which a task may
// start to backfill.
const fillLeast = 2 * time.Minute

// MayBackfill reports whether a task may backfill a GPU that is reserved for another.
func (rs *Reservations) MayBackfill(t *model.Task, g *model.GPU) bool {
	held := rs.TaskByID(rs.ReservedForHead(g))
	switch {
	case !rs.Options().FillHeld || held == nil || held.GPUs < 2 || held.Unfilled || t.Priority > held.Priority:
		return false
	case t.GPUs != 1 || t.Terminal || t.Phase == model.Suspended || t.Last() != nil && t.Last().Stays:
		return false
	case g.Suspend == model.SuspendNever || g.SuspendAlone && !t.NextExclusive:
		return false
	case rs.head.Until != 0 && rs.Now().Add(fillLeast) > rs.head.Until:
		return false
	}
	return rs.canFreeHeld(held, t, g)
}

// canFreeHeld reports whether the host memory of a machine would hold task held, the
// memory of the tasks that backfill GPUs there, and the memory of t in addition.
func (rs *Reservations) canFreeHeld(held, t *model.Task, g *model.GPU) bool {
	h := rs.Host(g.Node)
	if h == nil || !h.Known {
		return true
	}
	share, _ := rs.hostFits(held, h)
	sum := share.Memory + t.NeedOn(g)
	for _, at := range rs.MachineOf(g) {
		for i := range at.Residents {
			if r := &at.Residents[i]; rs.VacatesFor(held, r) {
				sum = (sum + r.Taken()).Clamp()
			}
		}
	}
	return sum.Clamp() <= h.FreeMemory()
}

// MayFreeHeld reports whether backfilling tasks may be suspended for a waiting task,
// because GPUs are reserved for it.
func (rs *Reservations) MayFreeHeld(t *model.Task) bool {
	return rs.Options().FillHeld && t.GPUs > 1 && rs.head.Task == t.ID && t.Phase != model.Suspended
}

// VacatesFor reports whether a resident of a GPU backfills and is suspended when t, a
// task on several GPUs, could start without it.
func (rs *Reservations) VacatesFor(t *model.Task, r *model.Resident) bool {
	v := rs.TaskByID(r.Task)
	return rs.Options().FillHeld && t.GPUs > 1 && v.Phase.Placed() && v.Backfilling() && v.Priority <= t.Priority
}

// BackfillReason returns why a running task may be suspended for the task whose reserved GPU
// it backfills, or the zero Reason.
func (rs *Reservations) BackfillReason(t *model.Task) model.Reason {
	if t.Phase != model.Running || !t.Backfilling() {
		return model.Reason{}
	}
	g := rs.GPU(t.Current().Grants[0].GPU)
	held := rs.TaskByID(rs.ReservedForHead(g))
	if held == nil || !rs.VacatesFor(held, g.Resident(t.ID)) {
		return model.Reason{}
	}
	return model.Reason{Code: model.ReasonFills, Task: held.ID, GPU: g.Index}
}

// BackfillFailed records that a backfilling task could not be suspended: no other task
// may backfill the GPUs reserved for why.Task.
func (rs *Reservations) BackfillFailed(why model.Reason) {
	if held := rs.TaskByID(why.Task); held != nil {
		held.Unfilled = true
	}
}
