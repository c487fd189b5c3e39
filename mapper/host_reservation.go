package mapper

import (
	"slices"

	"carma/mapper/model"
)

// hostReservedAgainst reports whether a machine's memory is reserved for a task that t
// may not overtake.
func (q *schedulingQueue) hostReservedAgainst(t *model.Task, h *model.Host) bool {
	k := q.head.Host
	if k == nil || k.Node != h.Node || q.head.Task == t.ID || q.TaskByID(q.head.Task) == nil {
		return false
	}
	return q.waiting.before(q.TaskByID(q.head.Task), t)
}

// hostReservation names the machine whose memory is reserved for a task.
type hostReservation struct {
	Node string `json:"node,omitempty"`
}

// reserveHost reserves a machine's memory for a task whose aging is over, if that is what
// it lacks. It picks the capable machine with the most free memory.
func (q *schedulingQueue) reserveHost(t *model.Task) {
	q.head.Host = nil
	if q.hostShort(t).Code == "" {
		return
	}
	var best *model.Host
	for _, h := range q.HostList() {
		able := t.GPUs == 0 || slices.ContainsFunc(q.GPUList(), func(g *model.GPU) bool { return g.Node == h.Node })
		memory, cpus := h.WithoutHelpers() // helpers may stay for weeks
		if share := q.HostShareOf(t, h); h.Known && able && share.Memory <= memory && share.CPUs <= max(0, cpus) && (best == nil || h.FreeMemory() > best.FreeMemory()) {
			best = h
		}
	}
	if best != nil {
		q.head.Task, q.head.Host = t.ID, &hostReservation{best.Node}
	}
}
