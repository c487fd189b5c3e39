package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"carma/mapper/model"
	"carma/runner/api"
)

// Indexes formats a set of GPUs, such as 0,2.
func Indexes(gpus []api.GPURef) string {
	gpus = slices.SortedFunc(slices.Values(gpus), func(a, b api.GPURef) int { return a.Index - b.Index })
	parts := make([]string, len(gpus))
	for i, g := range gpus {
		parts[i] = strconv.Itoa(g.Index)
	}
	return strings.Join(parts, ",")
}

// Beside returns "on GPU 0", "on GPUs 0,2" or "without a GPU".
func Beside(gpus []api.GPURef) string {
	if len(gpus) == 0 {
		return "without a GPU"
	}
	return "on " + OnGPUs(gpus)
}

// OnGPUs returns "GPU 0" or "GPUs 0,2".
func OnGPUs(gpus []api.GPURef) string {
	if len(gpus) == 1 {
		return "GPU " + Indexes(gpus)
	}
	return "GPUs " + Indexes(gpus)
}

// IdleText describes since when a running task is idle, and the consequences.
func IdleText(i *api.Idle) string {
	text := "it has done nothing since " + i.Since.Local().Format("15:04 on 2 January")
	if i.Unused {
		text = "it has not used its GPUs since " + i.Since.Local().Format("15:04 on 2 January")
	}
	if !i.Ends.IsZero() {
		text += "; it is stopped at " + i.Ends.Local().Format("15:04")
	}
	return text
}

// Placed reports whether a task holds GPUs.
func Placed(t *api.Task) bool {
	return model.Phase(t.Phase).Placed()
}

// LastAttempt returns the latest attempt, or nil.
func LastAttempt(t *api.Task) *api.Attempt {
	if len(t.Attempts) == 0 {
		return nil
	}
	return &t.Attempts[len(t.Attempts)-1]
}

// LastAway returns the time for which the latest attempt was suspended, up to now.
func LastAway(t *api.Task) time.Duration {
	if at := LastAttempt(t); at != nil {
		return at.Suspended
	}
	return 0
}

// Ending describes the end of a task, without its name: "failed: exit code 1".
func Ending(t *api.Task) string {
	why := t.Reason
	if why == "" && t.ExitCode != nil && *t.ExitCode != 0 {
		why = fmt.Sprintf("exit code %d", *t.ExitCode)
	}
	if why == "" {
		return t.Phase
	}
	return t.Phase + ": " + why
}

// TaskCode returns the exit code of a command that exits with a finished task's code.
func TaskCode(t *api.Task) int {
	switch {
	case t.Phase == string(model.Succeeded):
		return ExitOK
	case t.ExitCode != nil && *t.ExitCode > 0 && *t.ExitCode < 256:
		return *t.ExitCode
	case t.ExitCode == nil && t.Phase == string(model.Failed):
		return ExitCarma // the task never ran
	}
	return ExitFailed
}
