package ledger

import (
	"cmp"
	"slices"
	"time"

	"carma/mapper/model"
)

// PerTask holds something that a part derives for each unfinished task.
type PerTask[T any] []*taskEntry[T]

type taskEntry[T any] struct {
	task  *model.Task
	value T
}

// Of returns the value of a task, which is zero until the part sets it. A copy of a task
// has none: its changes are lost.
func (all *PerTask[T]) Of(t *model.Task) *T {
	index := t.Index()
	if index == 0 {
		return new(T)
	}
	for len(*all) <= index {
		*all = append(*all, nil)
	}
	e := (*all)[index]
	if e == nil || e.task != t {
		e = &taskEntry[T]{task: t}
		(*all)[index] = e
	}
	return &e.value
}

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
	links       PerTask[kindLinks]
}

func newTaskIndex() taskIndex {
	return taskIndex{tasks: map[model.TaskID]*model.Task{}, byKind: map[string]*model.Task{}}
}

// UseID records that a task number is used.
func (x *taskIndex) UseID(id model.TaskID) { x.lastID = max(x.lastID, id) }

// AddTask adds a task to the unfinished tasks.
func (x *taskIndex) AddTask(t *model.Task) {
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
		older, newer = x.links.Of(older).older, older
	}
	*x.links.Of(t) = kindLinks{newer, older}
	if older != nil {
		x.links.Of(older).newer = t
	}
	if newer != nil {
		x.links.Of(newer).older = t
	} else {
		x.byKind[t.Kind] = t
	}
}

// RemoveTask removes a task from the unfinished tasks.
func (x *taskIndex) RemoveTask(t *model.Task) {
	delete(x.tasks, t.ID)
	if t.Slot > 0 {
		x.slots--
	}
	links := x.links.Of(t)
	if links.older != nil {
		x.links.Of(links.older).newer = links.newer
	}
	switch {
	case links.newer != nil:
		x.links.Of(links.newer).older = links.older
	case links.older != nil:
		x.byKind[t.Kind] = links.older
	default:
		delete(x.byKind, t.Kind)
	}
	*links = kindLinks{}
	x.freeIndices = append(x.freeIndices, t.Index())
	t.SetIndex(0)
}

// SetSlot changes the slot of an unfinished task.
func (x *taskIndex) SetSlot(t *model.Task, slot time.Duration) {
	if t.Slot > 0 {
		x.slots--
	}
	if t.Slot = max(0, slot); t.Slot > 0 {
		x.slots++
	}
}

// WaitingOf appends the waiting tasks of a kind.
func (x *taskIndex) WaitingOf(kind string, tasks []*model.Task) []*model.Task {
	for t := x.byKind[kind]; t != nil; t = x.links.Of(t).older {
		if t.Waiting() {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// GpusOf returns the GPUs that have a task of one of these kinds, in ledger order.
func (l *Ledger) GpusOf(kinds ...string) []*model.GPU {
	var gpus []*model.GPU
	for _, kind := range kinds {
		for t := l.byKind[kind]; t != nil; t = l.links.Of(t).older {
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

// Clone returns an index of copies of the tasks.
func (x *taskIndex) Clone() taskIndex {
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
		links := x.links.Of(t)
		*c.links.Of(c.tasks[id]) = kindLinks{copyOf(links.newer), copyOf(links.older)}
	}
	for kind, t := range x.byKind {
		c.byKind[kind] = copyOf(t)
	}
	return c
}

// Task returns an unfinished task. The caller must not change it, and must not keep it
// over the next Step.
func (x *taskIndex) Task(id model.TaskID) (*model.Task, bool) {
	t, ok := x.tasks[id]
	return t, ok
}

// Tasks returns copies of all unfinished tasks by number.
func (x *taskIndex) Tasks() []model.Task {
	all := make([]model.Task, 0, len(x.tasks))
	for _, t := range x.tasks {
		all = append(all, *t.Clone())
	}
	slices.SortFunc(all, func(a, b model.Task) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// Suspended returns the suspended tasks, by number, and how many of them wait to resume.
// The caller must not change them, and must not keep them over the next Step.
func (l *Ledger) Suspended() (all []*model.Task, waiting int) {
	for _, t := range l.tasks { // sorted below
		if t.Phase == model.Suspended {
			all = append(all, t)
			if t.Waiting() {
				waiting++
			}
		}
	}
	slices.SortFunc(all, func(a, b *model.Task) int { return cmp.Compare(a.ID, b.ID) })
	return all, waiting
}

// TaskList returns the unfinished tasks by number.
func (x *taskIndex) TaskList() []*model.Task {
	all := make([]*model.Task, 0, len(x.tasks))
	for _, t := range x.tasks {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *model.Task) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// AnyTask reports whether a condition is true for an unfinished task.
func (x *taskIndex) AnyTask(is func(*model.Task) bool) bool {
	for _, t := range x.tasks { // the order does not matter
		if is(t) {
			return true
		}
	}
	return false
}

// Unfinished returns the number of unfinished tasks.
func (x *taskIndex) Unfinished() int { return len(x.tasks) }

// LastID returns the highest task number ever used.
func (x *taskIndex) LastID() model.TaskID { return x.lastID }

// TaskByID returns an unfinished task, or nil.
func (x *taskIndex) TaskByID(id model.TaskID) *model.Task { return x.tasks[id] }

// OfKind returns the unfinished tasks of a kind, the newest first.
func (x *taskIndex) OfKind(kind string) (tasks []*model.Task) {
	for t := x.byKind[kind]; t != nil; t = x.links.Of(t).older {
		tasks = append(tasks, t)
	}
	return tasks
}

// TasksWithSlot returns the number of unfinished tasks with a slot of their own.
func (x *taskIndex) TasksWithSlot() int { return x.slots }
