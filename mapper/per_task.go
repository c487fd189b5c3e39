package mapper

import "carma/mapper/model"

// perTask holds something that a part derives for each unfinished task.
type perTask[T any] []*taskEntry[T]

type taskEntry[T any] struct {
	task  *model.Task
	value T
}

// of returns the value of a task, which is zero until the part sets it. A copy of a task
// has none: its changes are lost.
func (all *perTask[T]) of(t *model.Task) *T {
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
