package mapper

import (
	"cmp"
	"slices"

	"carma/internal/units"
	"carma/mapper/model"
)

// headReservation reserves GPUs for the first task in queue order that does not fit and
// whose aging is over. Tasks behind it are not placed on these GPUs, so it cannot be
// overtaken indefinitely. Tasks before it are not affected.
type headReservation struct {
	Task model.TaskID  `json:"task,omitempty"`
	GPUs []model.GPUID `json:"gpus,omitempty"`
	// Until is the instant at which the GPUs are expected to be ready, or 0 if the task
	// is not critical (critical_reservation.go). Of the tasks of its priority only the
	// ones that are expected to end before Until may run there.
	Until units.Instant `json:"until,omitempty"`
	// Host is set if the memory of a machine is reserved for it.
	Host *hostReservation `json:"host,omitempty"`
}

// clone returns a copy with a list of GPUs of its own.
func (h headReservation) clone() headReservation {
	h.GPUs = slices.Clone(h.GPUs)
	return h
}

// reservedForTask returns the task for which a GPU is nominated or reserved, or 0.
func (rs *reservations) reservedForTask(g *model.GPU) model.TaskID {
	if g.NominatedFor != 0 {
		return g.NominatedFor
	}
	return rs.reservedForHead(g)
}

// reservedForHead returns the task for which a GPU is reserved because its aging is over
// or it is critical, or 0.
func (rs *reservations) reservedForHead(g *model.GPU) model.TaskID {
	if slices.Contains(rs.head.GPUs, g.ID) {
		return rs.head.Task
	}
	return 0
}

// reservedAgainst reports whether a GPU is reserved for a task that t may not overtake.
func (pl *placer) reservedAgainst(t *model.Task, g *model.GPU) bool {
	id := pl.reserve.reservedForHead(g)
	switch {
	case id == 0 || id == t.ID:
		return false
	case pl.overtakesOn(t, id, g):
		return !pl.reserve.backfills(t, g)
	}
	return false
}

// overtakesOn reports whether a task placed on a GPU would overtake the task for which
// the GPU is reserved.
func (pl *placer) overtakesOn(t *model.Task, id model.TaskID, g *model.GPU) bool {
	if pl.reserve.headReservation().Until != 0 {
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
	pl.reserve.reserveHost(t)
	p.fit = pl.freeSummary(p)
}

// reserveFor chooses the GPUs to reserve for a task. It keeps its earlier choice while
// those GPUs can serve the task.
func (pl *placer) reserveFor(t *model.Task, before headReservation) {
	unfit := func(id model.GPUID) bool {
		g := pl.GPU(id)
		return g == nil || pl.RoomFor(t, g) < max(t.NeedOn(g), 1) || pl.reserve.reservedByUser(t, g)
	}
	if before.Task == t.ID && !slices.ContainsFunc(before.GPUs, unfit) {
		pl.reserve.setHead(before)
		return
	}
	if t.GPUs == 0 {
		return
	}
	pl.reserve.setHead(headReservation{Task: t.ID, GPUs: idsOf(pl.reserve.soonest(t))})
}

// soonest guesses which GPUs will first have room for a task: the GPUs with the fewest
// tasks if it needs exclusive GPUs, else the GPUs with the most free memory.
func (rs *reservations) soonest(t *model.Task) []*model.GPU {
	alone := rs.RunsAlone(t)
	var able []*model.GPU
	for _, g := range rs.GPUList() {
		if rs.RoomFor(t, g) >= max(t.NeedOn(g), 1) && !rs.reservedByUser(t, g) {
			able = append(able, g)
		}
	}
	able = ofMachinesWith(t.GPUs, able)
	slices.SortStableFunc(able, func(a, b *model.GPU) int {
		free := cmp.Compare(rs.FreeMemory(b), rs.FreeMemory(a))
		if alone {
			return cmp.Or(cmp.Compare(len(a.Residents), len(b.Residents)), free)
		}
		return cmp.Or(model.CompareBools(a.ExclusivelyUsed(), b.ExclusivelyUsed()), free)
	})
	return closest(t, able)
}

func idsOf(gpus []*model.GPU) (ids []model.GPUID) {
	for _, g := range gpus {
		ids = append(ids, g.ID)
	}
	return ids
}
