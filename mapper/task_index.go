package mapper

import (
	"cmp"
	"slices"
	"time"

	"carma/mapper/model"
)

// kindLinks links the unfinished tasks of one kind, so that the cost of learning about a
// kind depends on the number of its tasks, not on the number of waiting tasks. No
// decision depends on the order of the links.
type kindLinks struct{ newer, older *model.Task }

// taskIndex holds the unfinished tasks, by number and by kind.
type taskIndex struct {
	tasks  map[model.TaskID]*model.Task // look-up only
	byKind map[string]*model.Task       // the newest of each kind; look-up only
	slots  int                          // tasks with a slot of their own
	lastID model.TaskID

	indices     int   // given to tasks, also to finished ones
	freeIndices []int // of finished tasks
	links       perTask[kindLinks]
}

func newTaskIndex() taskIndex {
	return taskIndex{tasks: map[model.TaskID]*model.Task{}, byKind: map[string]*model.Task{}}
}

// addTask adds a task to the unfinished tasks.
func (x *taskIndex) addTask(t *model.Task) {
	x.tasks[t.ID] = t
	if n := len(x.freeIndices); n > 0 {
		t.SetIndex(x.freeIndices[n-1])
		x.freeIndices = x.freeIndices[:n-1]
	} else {
		x.indices++
		t.SetIndex(x.indices)
	}
	if t.Slot > 0 {
		x.slots++
	}
	if t.Kind == "" {
		return
	}
	older, newer := x.byKind[t.Kind], (*model.Task)(nil)
	for older != nil && older.ID > t.ID { // usually none: the newest has the highest number, except for a task that changes its kind or was adopted
		older, newer = x.links.of(older).older, older
	}
	*x.links.of(t) = kindLinks{newer, older}
	if older != nil {
		x.links.of(older).newer = t
	}
	if newer != nil {
		x.links.of(newer).older = t
	} else {
		x.byKind[t.Kind] = t
	}
}

// removeTask removes a task from the unfinished tasks.
func (x *taskIndex) removeTask(t *model.Task) {
	delete(x.tasks, t.ID)
	if t.Slot > 0 {
		x.slots--
	}
	links := x.links.of(t)
	if links.older != nil {
		x.links.of(links.older).newer = links.newer
	}
	switch {
	case links.newer != nil:
		x.links.of(links.newer).older = links.older
	case links.older != nil:
		x.byKind[t.Kind] = links.older
	default:
		delete(x.byKind, t.Kind)
	}
	*links = kindLinks{}
	x.freeIndices = append(x.freeIndices, t.Index())
	t.SetIndex(0)
}

// setSlot changes the slot of an unfinished task.
func (x *taskIndex) setSlot(t *model.Task, slot time.Duration) {
	if t.Slot > 0 {
		x.slots--
	}
	if t.Slot = max(0, slot); t.Slot > 0 {
		x.slots++
	}
}

// waitingOf appends the waiting tasks of a kind.
func (x *taskIndex) waitingOf(kind string, tasks []*model.Task) []*model.Task {
	for t := x.byKind[kind]; t != nil; t = x.links.of(t).older {
		if t.Waiting() {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// gpusOf returns the GPUs that have a task of one of these kinds, in ledger order.
func (l *ledger) gpusOf(kinds ...string) []*model.GPU {
	var gpus []*model.GPU
	for _, kind := range kinds {
		for t := l.byKind[kind]; t != nil; t = l.links.of(t).older {
			if t.Current() == nil {
				continue
			}
			for _, grant := range t.Current().Grants {
				if g := l.byID[grant.GPU]; g != nil && g.Resident(t.ID) != nil { // nil: the GPU was lost, and its last task ends
					gpus = append(gpus, g)
				}
			}
		}
	}
	slices.SortFunc(gpus, func(a, b *model.GPU) int { return cmp.Compare(a.Pos(), b.Pos()) })
	return slices.Compact(gpus)
}

// clone returns an index of copies of the tasks.
func (x *taskIndex) clone() taskIndex {
	c := taskIndex{tasks: make(map[model.TaskID]*model.Task, len(x.tasks)), byKind: make(map[string]*model.Task, len(x.byKind)), slots: x.slots, lastID: x.lastID, indices: x.indices, freeIndices: slices.Clone(x.freeIndices)}
	for id, t := range x.tasks {
		c.tasks[id] = t.Clone()
		c.tasks[id].SetIndex(t.Index())
	}
	copyOf := func(t *model.Task) *model.Task {
		if t == nil {
			return nil
		}
		return c.tasks[t.ID]
	}
	for id, t := range x.tasks {
		links := x.links.of(t)
		*c.links.of(c.tasks[id]) = kindLinks{copyOf(links.newer), copyOf(links.older)}
	}
	for kind, t := range x.byKind {
		c.byKind[kind] = copyOf(t)
	}
	return c
}
