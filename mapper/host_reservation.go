package mapper

import "slices"

// hostReservedAgainst reports whether a machine's memory is reserved for a task that t
// may not overtake.
func (s *State) hostReservedAgainst(t *Task, h *Host) bool {
	k := s.head.Host
	if k == nil || k.Node != h.Node || s.head.Task == t.ID || s.tasks[s.head.Task] == nil {
		return false
	}
	return s.queue.before(s.tasks[s.head.Task], t)
}

// hostReservation names the machine whose memory is reserved for a task.
type hostReservation struct {
	Node string `json:"node,omitempty"`
}

// reserveHost reserves a machine's memory for a task whose aging is over, if that is what
// it lacks. It picks the capable machine with the most free memory.
func (s *State) reserveHost(t *Task) {
	s.head.Host = nil
	if s.hostShort(t).Code == "" {
		return
	}
	var best *Host
	for _, h := range s.hosts {
		able := t.GPUs == 0 || slices.ContainsFunc(s.gpus, func(g *GPU) bool { return g.Node == h.Node })
		memory, cpus := h.withoutHelpers() // helpers may stay for weeks
		if share := s.hostShare(t, h); h.Known && able && share.Memory <= memory && share.CPUs <= max(0, cpus) && (best == nil || h.free() > best.free()) {
			best = h
		}
	}
	if best != nil {
		s.head.Task, s.head.Host = t.ID, &hostReservation{best.Node}
	}
}
