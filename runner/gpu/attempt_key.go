package gpu

import (
	"cmp"

	"carma/mapper/model"
)

// AttemptKey identifies an attempt of a task, to which containers and processes belong.
type AttemptKey struct {
	Task    model.TaskID
	Attempt int // from 1
}

// Compare orders attempts by task, then by number.
func (k AttemptKey) Compare(o AttemptKey) int {
	return cmp.Or(cmp.Compare(k.Task, o.Task), k.Attempt-o.Attempt)
}
