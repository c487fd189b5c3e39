package mapper

import (
	"time"

	"carma/mapper/model"
)

// Tasks on one GPU that the driver can suspend may backfill GPUs that are reserved for a
// task on several GPUs, even beyond the time of the reservation. They are suspended when
// the other task could start without them.

// fillLeast is the shortest expected remaining time of a reservation for which a task may
// start to backfill.
const fillLeast = 2 * time.Minute

// backfills reports whether a task may backfill a GPU that is reserved for another.
func (rs *reservations) backfills(t *model.Task, g *model.GPU) bool {
	held := rs.TaskByID(rs.reservedForHead(g))
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
func (rs *reservations) canFreeHeld(held, t *model.Task, g *model.GPU) bool {
	h := rs.Host(g.Node)
	if h == nil || !h.Known {
		return true
	}
	share, _ := rs.hostFits(held, h)
	sum := share.Memory + t.NeedOn(g)
	for _, at := range rs.MachineOf(g) {
		for i := range at.Residents {
			if r := &at.Residents[i]; rs.vacatesHeld(held, r) {
				sum = (sum + r.Taken()).Clamp()
			}
		}
	}
	return sum.Clamp() <= h.FreeMemory()
}

// backfillsFor returns the task for which the GPU is reserved, or 0 if it is reserved for
// none, or for one that t may overtake or ends before.
func (pl *placer) backfillsFor(t *model.Task, gpus []*model.GPU) model.TaskID {
	if !pl.Options().FillHeld || len(gpus) != 1 {
		return 0
	}
	g := gpus[0]
	if id := pl.reserve.reservedForHead(g); id != 0 && id != t.ID && pl.overtakesOn(t, id, g) {
		return id
	}
	return 0
}

// heldFreed reports whether backfilling tasks may be suspended for a waiting task,
// because GPUs are reserved for it.
func (rs *reservations) heldFreed(t *model.Task) bool {
	return rs.Options().FillHeld && t.GPUs > 1 && rs.head.Task == t.ID && t.Phase != model.Suspended
}

// vacatesHeld reports whether a resident of a GPU backfills and is suspended when t, a
// task on several GPUs, could start without it.
func (rs *reservations) vacatesHeld(t *model.Task, r *model.Resident) bool {
	v := rs.TaskByID(r.Task)
	return rs.Options().FillHeld && t.GPUs > 1 && v.Phase.Placed() && v.Backfilling() && v.Priority <= t.Priority
}

// canBackfill returns why a running task may be suspended for the task whose reserved GPU
// it backfills, or the zero Reason.
func (rs *reservations) canBackfill(t *model.Task) model.Reason {
	if t.Phase != model.Running || !t.Backfilling() {
		return model.Reason{}
	}
	g := rs.GPU(t.Current().Grants[0].GPU)
	held := rs.TaskByID(rs.reservedForHead(g))
	if held == nil || !rs.vacatesHeld(held, g.Resident(t.ID)) {
		return model.Reason{}
	}
	return model.Reason{Code: model.ReasonFills, Task: held.ID, GPU: g.Index}
}

// cannotBackfill records that a backfilling task could not be suspended: no other task
// may backfill the GPUs reserved for why.Task.
func (rs *reservations) cannotBackfill(why model.Reason) {
	if held := rs.TaskByID(why.Task); held != nil {
		held.Unfilled = true
	}
}
