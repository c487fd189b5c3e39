package mapper

import "slices"

// hostKeptFrom reports whether a machine's memory is kept for a task that t may not
// overtake.
func (s *State) hostKeptFrom(t *Task, h *Host) bool {
	k := s.kept.Host
	if k == nil || k.Node != h.Node || s.kept.Task == t.ID || s.tasks[s.kept.Task] == nil {
		return false
	}
	return s.queue.before(s.tasks[s.kept.Task], t)
}

// keptHost is the machine whose memory is kept for a task.
type keptHost struct {
	Node string `json:"node,omitempty"`
}

// keepHost keeps a machine's memory for a task whose ageing is over, if that is what
// it lacks: the one with the most free of those that could give it.
func (s *State) keepHost(t *Task) {
	s.kept.Host = nil
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
		s.kept.Task, s.kept.Host = t.ID, &keptHost{best.Node}
	}
}
