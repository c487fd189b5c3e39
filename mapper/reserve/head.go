package reserve

import (
	"cmp"
	"slices"

	"carma/internal/units"
	"carma/mapper/ledger"
	"carma/mapper/model"
)

// Head reserves GPUs for the first task in queue order that does not fit and
// whose aging is over. Tasks behind it are not placed on these GPUs, so it cannot be
// overtaken indefinitely. Tasks before it are not affected.
type Head struct {
	Task model.TaskID  `json:"task,omitempty"`
	GPUs []model.GPUID `json:"gpus,omitempty"`
	// Until is the instant at which the GPUs are expected to be ready, or 0 if the task
	// is not critical (critical_reservation.go). Of the tasks of its priority only the
	// ones that are expected to end before Until may run there.
	Until units.Instant `json:"until,omitempty"`
	// Host is set if the memory of a machine is reserved for it.
	Host *hostReservation `json:"host,omitempty"`
}

// Clone returns a copy with a list of GPUs of its own.
func (h Head) clone() Head {
	h.GPUs = slices.Clone(h.GPUs)
	return h
}

// hostReservation names the machine whose memory is reserved for a task.
type hostReservation struct {
	Node string `json:"node,omitempty"`
}

// SkippedBySummary reports whether the summary omits a reserved GPU. passed tells whether the
// cycle has passed the task for which GPUs are reserved.
func (rs *Reservations) SkippedBySummary(passed bool, g *model.GPU) bool {
	return passed && !rs.Options().FillHeld && rs.head.Until == 0 && rs.ReservedForHead(g) != 0
}

// ReservedForTask returns the task for which a GPU is nominated or reserved, or 0.
func (rs *Reservations) ReservedForTask(g *model.GPU) model.TaskID {
	if g.NominatedFor != 0 {
		return g.NominatedFor
	}
	return rs.ReservedForHead(g)
}

// ReservedForHead returns the task for which a GPU is reserved because its aging is over
// or it is critical, or 0.
func (rs *Reservations) ReservedForHead(g *model.GPU) model.TaskID {
	if slices.Contains(rs.head.GPUs, g.ID) {
		return rs.head.Task
	}
	return 0
}

// Soonest guesses which GPUs will first have room for a task: the GPUs with the fewest
// tasks if it needs exclusive GPUs, else the GPUs with the most free memory.
func (rs *Reservations) Soonest(t *model.Task) []*model.GPU {
	alone := rs.RunsAlone(t)
	var able []*model.GPU
	for _, g := range rs.GPUList() {
		if rs.RoomFor(t, g) >= max(t.NeedOn(g), 1) && !rs.IsReserved(t, g) {
			able = append(able, g)
		}
	}
	able = ledger.OfMachinesWith(t.GPUs, able)
	slices.SortStableFunc(able, func(a, b *model.GPU) int {
		free := cmp.Compare(rs.FreeMemory(b), rs.FreeMemory(a))
		if alone {
			return cmp.Or(cmp.Compare(len(a.Residents), len(b.Residents)), free)
		}
		return cmp.Or(model.CompareBools(a.ExclusivelyUsed(), b.ExclusivelyUsed()), free)
	})
	return ledger.Closest(t, able)
}

// HostReservedAgainst reports whether a machine's memory is reserved for a task that t
// may not overtake.
func (rs *Reservations) HostReservedAgainst(t *model.Task, h *model.Host) bool {
	k := rs.head.Host
	if k == nil || k.Node != h.Node || rs.head.Task == t.ID || rs.TaskByID(rs.head.Task) == nil {
		return false
	}
	return rs.queue.Before(rs.TaskByID(rs.head.Task), t)
}

// ReserveHost reserves a machine's memory for a task whose aging is over, if that is what
// it lacks. It picks the capable machine with the most free memory.
func (rs *Reservations) ReserveHost(t *model.Task) {
	rs.head.Host = nil
	if rs.HostShort(t).Code == "" {
		return
	}
	var best *model.Host
	for _, h := range rs.HostList() {
		able := t.GPUs == 0 || slices.ContainsFunc(rs.GPUList(), func(g *model.GPU) bool { return g.Node == h.Node })
		memory, cpus := h.WithoutHelpers() // helpers may stay for weeks
		if share := rs.HostShareOf(t, h); h.Known && able && share.Memory <= memory && share.CPUs <= max(0, cpus) && (best == nil || h.FreeMemory() > best.FreeMemory()) {
			best = h
		}
	}
	if best != nil {
		rs.head.Task, rs.head.Host = t.ID, &hostReservation{best.Node}
	}
}

// SetHead reserves GPUs for a task in place of the present head reservation.
func (rs *Reservations) SetHead(h Head) { rs.head = h }

// DropHead ends the head reservation if it is for a task.
func (rs *Reservations) DropHead(id model.TaskID) {
	if rs.head.Task == id {
		rs.head = Head{}
	}
}

// Head returns the head reservation, or the zero one if there is none.
func (rs *Reservations) Head() Head { return rs.head }

// ReservedFor returns the task for which a GPU is nominated or reserved, or 0.
func (rs *Reservations) ReservedFor(id model.GPUID) model.TaskID {
	if g := rs.GPU(id); g != nil {
		return rs.ReservedForTask(g)
	}
	return 0
}
