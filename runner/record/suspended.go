package record

import (
	"fmt"

	"carma/mapper/model"
)

// UntilResumed describes the event that ends the suspension of a task.
func UntilResumed(t *model.Task) string {
	switch {
	case t.Phase == model.Resuming:
		return "it is back on its GPU"
	case t.Hold != nil:
		return fmt.Sprintf("carma release %d", t.ID)
	case !t.Suspension.Automatic:
		return fmt.Sprintf("carma resume %d", t.ID)
	}
	return fmt.Sprintf("it has room on its GPU; carma why %d tells more", t.ID)
}

// LastAttempt returns the number of a task's latest attempt, or 0 if it has none.
func LastAttempt(t *model.Task) int {
	if last := t.Last(); last != nil {
		return last.N
	}
	return 0
}
