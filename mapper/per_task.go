package mapper

// perTask holds something that a part derives for each unfinished task.
type perTask[T any] []*taskEntry[T]

type taskEntry[T any] struct {
	task  *Task
	value T
}

// of returns the value of a task, which is zero until the part sets it. A copy of a task
// has none: its changes are lost.
func (all *perTask[T]) of(t *Task) *T {
	if t.index == 0 {
		return new(T)
	}
	for len(*all) <= t.index {
		*all = append(*all, nil)
	}
	e := (*all)[t.index]
	if e == nil || e.task != t {
		e = &taskEntry[T]{task: t}
		(*all)[t.index] = e
	}
	return &e.value
}
