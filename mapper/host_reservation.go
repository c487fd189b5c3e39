package mapper

import "slices"

// hostReservedAgainst reports whether a machine's memory is kept for a task that t may not
// overtake.
func (s *State) hostReservedAgainst(t *Task, h *Host) bool {
	k := s.head.Host
	if k == nil || k.Node != h.Node || s.head.Task == t.ID || s.tasks[s.head.Task] == nil {
		return false
	}
	return s.queue.before(s.tasks[s.head.Task], t)
}

// hostReservation is the machine whose memory is kept for a task.
type hostReservation struct {
	Node string `json:"node,omitempty"`
}

// reserveHost keeps a machine's memory for a task whose ageing is over, if that is what
// it lacks: the one with the most free of those that could give it.
func (s *State) reserveHost(t *Task) {
	s.head.Host = nil
	if s.hostShort(t).Code == "" {
		return
	}
	var best *Host
	for _, h := range s.hosts {
		able := t.GPUs == 0 || slices.ContainsFunc(s.gpus, func(g *GPU) bool { return g.Node == h.Node })
		memory, cpus := h.withoutHelpers() // those may stay for weeks
		if share := s.hostShare(t, h); h.Known && able && share.Memory <= memory && share.CPUs <= max(0, cpus) && (best == nil || h.free() > best.free()) {
			best = h
		}
	}
	if best != nil {
		s.head.Task, s.head.Host = t.ID, &hostReservation{best.Node}
	}
}
