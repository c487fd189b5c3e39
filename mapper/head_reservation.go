package mapper

import (
	"slices"

	"carma/mapper/model"
	"carma/mapper/reserve"
)

// reservedAgainst reports whether a GPU is reserved for a task that t may not overtake.
func (pl *placer) reservedAgainst(t *model.Task, g *model.GPU) bool {
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
func (pl *placer) overtakesOn(t *model.Task, id model.TaskID, g *model.GPU) bool {
	if pl.reserve.Head().Until != 0 {
		return !t.GoesFirst() && t.Priority <= pl.TaskByID(id).Priority && !pl.endsInTime(t, g)
	}
	return pl.queue.Before(pl.TaskByID(id), t)
}

// markBlocked records that t does not fit. Aging starts for the first such task of a
// scheduling cycle. GPUs are reserved for the first task whose aging is over. A task
// keeps its age when others come before it, so a stream of these cannot reset its aging.
func (pl *placer) markBlocked(p *cycle, t *model.Task) {
	p.blocked = append(p.blocked, t)
	if p.head == nil {
		p.head = t
		if t.BlockedAt == 0 {
			t.BlockedAt = pl.Now()
		}
	}
	if p.favoured != nil || t.BlockedAt == 0 || pl.Now() < t.BlockedAt.Add(pl.queue.Patience(t)) {
		return
	}
	p.favoured = t
	pl.reserveFor(t, p.before)
	pl.reserve.ReserveHost(t)
	p.fit = pl.freeSummary(p)
}

// reserveFor chooses the GPUs to reserve for a task. It keeps its earlier choice while
// those GPUs can serve the task.
func (pl *placer) reserveFor(t *model.Task, before reserve.Head) {
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
