package mapper

import (
	"cmp"
	"slices"
	"time"
)

// kindLinks links the unfinished tasks of one kind, so that the cost of learning about a
// kind depends on the number of its tasks, not on the number of waiting tasks. No
// decision depends on the order of the links.
type kindLinks struct{ newer, older *Task }

// addTask adds a task to the unfinished tasks.
func (s *State) addTask(t *Task) {
	s.tasks[t.ID] = t
	if t.Slot > 0 {
		s.slots++
	}
	if t.Kind == "" {
		return
	}
	older, newer := s.byKind[t.Kind], (*Task)(nil)
	for older != nil && older.ID > t.ID { // usually none: the newest has the highest number, except for a task that changes its kind or was adopted
		older, newer = older.links.older, older
	}
	t.links.older, t.links.newer = older, newer
	if older != nil {
		older.links.newer = t
	}
	if newer != nil {
		newer.links.older = t
	} else {
		s.byKind[t.Kind] = t
	}
}

// removeTask removes a task from the unfinished tasks.
func (s *State) removeTask(t *Task) {
	delete(s.tasks, t.ID)
	if t.Slot > 0 {
		s.slots--
	}
	if older := t.links.older; older != nil {
		older.links.newer = t.links.newer
	}
	switch {
	case t.links.newer != nil:
		t.links.newer.links.older = t.links.older
	case t.links.older != nil:
		s.byKind[t.Kind] = t.links.older
	default:
		delete(s.byKind, t.Kind)
	}
	t.links = kindLinks{}
}

// setSlot changes the slot of an unfinished task.
func (s *State) setSlot(t *Task, slot time.Duration) {
	if t.Slot > 0 {
		s.slots--
	}
	if t.Slot = max(0, slot); t.Slot > 0 {
		s.slots++
	}
}

// waitingOf appends the waiting tasks of a kind.
func (s *State) waitingOf(kind string, tasks []*Task) []*Task {
	for t := s.byKind[kind]; t != nil; t = t.links.older {
		if t.waiting() {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// gpusOf returns the GPUs that have a task of one of these kinds, in ledger order.
func (s *State) gpusOf(kinds ...string) []*GPU {
	var gpus []*GPU
	for _, kind := range kinds {
		for t := s.byKind[kind]; t != nil; t = t.links.older {
			if t.Current() == nil {
				continue
			}
			for _, grant := range t.Current().Grants {
				if g := s.byID[grant.GPU]; g != nil && g.resident(t.ID) != nil { // nil: the GPU was lost, and its last task ends
					gpus = append(gpus, g)
				}
			}
		}
	}
	slices.SortFunc(gpus, func(a, b *GPU) int { return cmp.Compare(a.pos, b.pos) })
	return slices.Compact(gpus)
}

// cloneKindLinks copies the links to the copies of the tasks.
func (s *State) cloneKindLinks(c *State) {
	copyOf := func(t *Task) *Task {
		if t == nil {
			return nil
		}
		return c.tasks[t.ID]
	}
	for id, t := range s.tasks {
		c.tasks[id].links = kindLinks{copyOf(t.links.newer), copyOf(t.links.older)}
	}
	c.byKind = make(map[string]*Task, len(s.byKind))
	for kind, t := range s.byKind {
		c.byKind[kind] = copyOf(t)
	}
}
