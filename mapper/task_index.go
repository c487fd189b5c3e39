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

// taskIndex holds the unfinished tasks, by number and by kind.
type taskIndex struct {
	tasks  map[TaskID]*Task // look-up only
	byKind map[string]*Task // the newest of each kind; look-up only
	slots  int              // tasks with a slot of their own
	lastID TaskID

	indices     int   // given to tasks, also to finished ones
	freeIndices []int // of finished tasks
}

func newTaskIndex() taskIndex {
	return taskIndex{tasks: map[TaskID]*Task{}, byKind: map[string]*Task{}}
}

// addTask adds a task to the unfinished tasks.
func (x *taskIndex) addTask(t *Task) {
	x.tasks[t.ID] = t
	if n := len(x.freeIndices); n > 0 {
		t.index, x.freeIndices = x.freeIndices[n-1], x.freeIndices[:n-1]
	} else {
		x.indices++
		t.index = x.indices
	}
	if t.Slot > 0 {
		x.slots++
	}
	if t.Kind == "" {
		return
	}
	older, newer := x.byKind[t.Kind], (*Task)(nil)
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
		x.byKind[t.Kind] = t
	}
}

// removeTask removes a task from the unfinished tasks.
func (x *taskIndex) removeTask(t *Task) {
	delete(x.tasks, t.ID)
	x.freeIndices, t.index = append(x.freeIndices, t.index), 0
	if t.Slot > 0 {
		x.slots--
	}
	if older := t.links.older; older != nil {
		older.links.newer = t.links.newer
	}
	switch {
	case t.links.newer != nil:
		t.links.newer.links.older = t.links.older
	case t.links.older != nil:
		x.byKind[t.Kind] = t.links.older
	default:
		delete(x.byKind, t.Kind)
	}
	t.links = kindLinks{}
}

// setSlot changes the slot of an unfinished task.
func (x *taskIndex) setSlot(t *Task, slot time.Duration) {
	if t.Slot > 0 {
		x.slots--
	}
	if t.Slot = max(0, slot); t.Slot > 0 {
		x.slots++
	}
}

// waitingOf appends the waiting tasks of a kind.
func (x *taskIndex) waitingOf(kind string, tasks []*Task) []*Task {
	for t := x.byKind[kind]; t != nil; t = t.links.older {
		if t.waiting() {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// gpusOf returns the GPUs that have a task of one of these kinds, in ledger order.
func (l *ledger) gpusOf(kinds ...string) []*GPU {
	var gpus []*GPU
	for _, kind := range kinds {
		for t := l.byKind[kind]; t != nil; t = t.links.older {
			if t.Current() == nil {
				continue
			}
			for _, grant := range t.Current().Grants {
				if g := l.byID[grant.GPU]; g != nil && g.resident(t.ID) != nil { // nil: the GPU was lost, and its last task ends
					gpus = append(gpus, g)
				}
			}
		}
	}
	slices.SortFunc(gpus, func(a, b *GPU) int { return cmp.Compare(a.pos, b.pos) })
	return slices.Compact(gpus)
}

// clone returns an index of copies of the tasks.
func (x *taskIndex) clone() taskIndex {
	c := taskIndex{tasks: make(map[TaskID]*Task, len(x.tasks)), byKind: make(map[string]*Task, len(x.byKind)), slots: x.slots, lastID: x.lastID, indices: x.indices, freeIndices: slices.Clone(x.freeIndices)}
	for id, t := range x.tasks {
		c.tasks[id] = t.clone()
		c.tasks[id].index = t.index
	}
	copyOf := func(t *Task) *Task {
		if t == nil {
			return nil
		}
		return c.tasks[t.ID]
	}
	for id, t := range x.tasks {
		c.tasks[id].links = kindLinks{copyOf(t.links.newer), copyOf(t.links.older)}
	}
	for kind, t := range x.byKind {
		c.byKind[kind] = copyOf(t)
	}
	return c
}
