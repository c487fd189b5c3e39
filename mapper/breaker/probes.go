package breaker

import (
	"slices"

	"carma/mapper/model"
)

// SelectProbes sets the group of tasks from which the probe is chosen. For failedBefore it
// removes all failed tasks but the latest.
func (b *Breakers) SelectProbes(among int) {
	if b.probeTask = among; among == failedBefore {
		b.engineBreaker.Tasks = b.engineBreaker.Tasks[max(0, len(b.engineBreaker.Tasks)-1):]
	}
}

// MayLaunch reports whether a task may be launched in this scheduling cycle.
func (b *Breakers) MayLaunch(t *model.Task) bool {
	switch {
	case b.probeTask == AllTasks || b.probeTask == onlyFailed:
		return true
	case slices.Contains(b.engineBreaker.Tasks, t.ID):
		return false
	}
	return b.probeTask != otherUsers || !slices.ContainsFunc(b.engineBreaker.Tasks, func(id model.TaskID) bool {
		f := b.TaskByID(id)
		return f != nil && f.User == t.User
	})
}

// The groups of tasks from which the probe is chosen.
const (
	otherUsers   = iota // tasks of users none of whose tasks has failed
	notFailed           // tasks that have not failed
	failedBefore        // tasks that have failed, except the latest
	onlyFailed          // any task
	AllTasks            // no probe: all tasks may be launched
)
