package mapper

import (
	"slices"

	"carma/mapper/model"
)

// hostReservedAgainst reports whether a machine's memory is reserved for a task that t
// may not overtake.
func (rs *reservations) hostReservedAgainst(t *model.Task, h *model.Host) bool {
	k := rs.head.Host
	if k == nil || k.Node != h.Node || rs.head.Task == t.ID || rs.TaskByID(rs.head.Task) == nil {
		return false
	}
	return rs.queue.Before(rs.TaskByID(rs.head.Task), t)
}

// hostReservation names the machine whose memory is reserved for a task.
type hostReservation struct {
	Node string `json:"node,omitempty"`
}

// reserveHost reserves a machine's memory for a task whose aging is over, if that is what
// it lacks. It picks the capable machine with the most free memory.
func (rs *reservations) reserveHost(t *model.Task) {
	rs.head.Host = nil
	if rs.hostShort(t).Code == "" {
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
