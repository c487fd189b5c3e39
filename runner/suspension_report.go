package runner

import (
	"fmt"

	"carma/mapper/model"
	"carma/mapper/words"
	"carma/runner/gpu"
	"carma/runner/record"
)

// reportSuspension reports to the reader of a task's output, and to its terminal, when the task
// is suspended and resumed.
func (h *hooks) reportSuspension(ev model.Event) {
	switch ev := ev.(type) {
	case model.SuspendDone:
		if t, ok := h.loop.State().Task(ev.Task); ok && ev.Failure == "" && t.Phase != model.Running {
			h.followers.Get(gpu.AttemptKey{Task: ev.Task, Attempt: ev.Attempt}).Suspend(ev.At)
			h.consoles.Say(ev.Task, awayText(t))
		}
	case model.Resumed:
		if t, ok := h.loop.State().Task(ev.Task); ok && ev.Failure == "" && t.Phase == model.Running {
			h.consoles.Say(ev.Task, "it is back on its GPU, and goes on")
			h.followers.Get(gpu.AttemptKey{Task: ev.Task, Attempt: ev.Attempt}).Resume(ev.At)
		}
	}
}

// awayText tells attached users that the task is suspended.
func awayText(t *model.Task) string {
	if t.Suspension == nil {
		return "it is off its GPU"
	}
	by := words.Reason(model.Reason{Code: model.ReasonSuspended, Name: t.Suspension.By, Text: t.Suspension.Why})
	return fmt.Sprintf("it is %s; its programs stand still until %s", by, record.UntilResumed(t))
}
