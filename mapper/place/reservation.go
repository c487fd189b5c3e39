package place

import (
	"slices"

	"carma/mapper/model"
	"carma/mapper/reserve"
)

// ReservedForOther reports whether a GPU is reserved for another task, by a nomination or by the
// head reservation.
func (pl *Placer) ReservedForOther(t *model.Task, g *model.GPU) bool {
	return pl.nominatedForOther(t, g) || pl.reservedAgainst(t, g)
}

// reservedAgainst reports whether a GPU is reserved for a task that t may not overtake.
func (pl *Placer) reservedAgainst(t *model.Task, g *model.GPU) bool {
	id := pl.reserve.ReservedForHead(g)
	switch {
	case id == 0 || id == t.ID:
		return false
	case pl.overtakesOn(t, id, g):
		return !pl.reserve.MayBackfill(t, g)
	}
	return false
}

// overtakesOn reports whether a task placed on a GPU would overtake the task for which
// the GPU is reserved.
func (pl *Placer) overtakesOn(t *model.Task, id model.TaskID, g *model.GPU) bool {
	if pl.reserve.Head().Until != 0 {
		return !t.GoesFirst() && t.Priority <= pl.TaskByID(id).Priority && !pl.endsInTime(t, g)
	}
	return pl.queue.Before(pl.TaskByID(id), t)
}

// MarkBlocked records that t does not fit. Aging starts for the first such task of a
// scheduling cycle. GPUs are reserved for the first task whose aging is over. A task
// keeps its age when others come before it, so a stream of these cannot reset its aging.
func (pl *Placer) MarkBlocked(c *Cycle, t *model.Task) {
	c.blocked = append(c.blocked, t)
	if c.head == nil {
		c.head = t
		if t.BlockedAt == 0 {
			t.BlockedAt = pl.Now()
		}
	}
	if c.favoured != nil || t.BlockedAt == 0 || pl.Now() < t.BlockedAt.Add(pl.queue.Patience(t)) {
		return
	}
	c.favoured = t
	pl.reserveFor(t, c.before)
	pl.reserve.ReserveHost(t)
	pl.UpdateFree(c)
}

// reserveFor chooses the GPUs to reserve for a task. It keeps its earlier choice while
// those GPUs can serve the task.
func (pl *Placer) reserveFor(t *model.Task, before reserve.Head) {
	unfit := func(id model.GPUID) bool {
		g := pl.GPU(id)
		return g == nil || pl.RoomFor(t, g) < max(t.NeedOn(g), 1) || pl.reserve.IsReserved(t, g)
	}
	if before.Task == t.ID && !slices.ContainsFunc(before.GPUs, unfit) {
		pl.reserve.SetHead(before)
		return
	}
	if t.GPUs == 0 {
		return
	}
	pl.reserve.SetHead(reserve.Head{Task: t.ID, GPUs: idsOf(pl.reserve.Soonest(t))})
}

func idsOf(gpus []*model.GPU) (ids []model.GPUID) {
	for _, g := range gpus {
		ids = append(ids, g.ID)
	}
	return ids
}

// nominatedForOther reports whether a GPU is nominated for another task. A task of higher
// priority may take a GPU that is kept only for a suspended task to resume, while no task
// is being suspended for it.
func (pl *Placer) nominatedForOther(t *model.Task, g *model.GPU) bool {
	if g.NominatedFor == 0 || g.NominatedFor == t.ID {
		return false
	}
	c := pl.TaskByID(g.NominatedFor)
	return c == nil || !c.ResumesInPlace() || t.Priority <= c.Priority || pl.LeavingForOther(c.ID)
}

// BackfillsFor returns the task for which the GPU is reserved, or 0 if it is reserved for
// none, or for one that t may overtake or ends before.
func (pl *Placer) BackfillsFor(t *model.Task, gpus []*model.GPU) model.TaskID {
	if !pl.Options().FillHeld || len(gpus) != 1 {
		return 0
	}
	g := gpus[0]
	if id := pl.reserve.ReservedForHead(g); id != 0 && id != t.ID && pl.overtakesOn(t, id, g) {
		return id
	}
	return 0
}

// ReserveCritical reserves GPUs for a critical task that fits nowhere. It takes the GPUs
// that are expected to be ready first. Until then only tasks that are expected to end in
// time may run there. Without the reservation, shorter tasks would repeatedly overtake a
// task on several GPUs, and it would start last, beside idle GPUs.
func (pl *Placer) ReserveCritical(c *Cycle, t *model.Task) {
	gpus, ready := pl.firstReady(t)
	if gpus == nil {
		return
	}
	pl.reserve.SetHead(reserve.Head{Task: t.ID, Until: ready, GPUs: idsOf(gpus)})
	c.favoured = t
	pl.UpdateFree(c)
}
