package mapper

import (
	"slices"

	"carma/mapper/model"
)

// launchesPaused reports whether nothing at all is launched now.
func (s *State) launchesPaused() bool {
	return s.Now() < s.notBefore || s.breakers.engineBreaker.Open(s.Now()) || s.launchLimitReached()
}

// launchProbe launches one probe task on a paused engine. It prefers a task of a user
// without any failed start, then a task without a failed start, then the next of the
// failed ones.
func (s *State) launchProbe() (p *cycle) {
	before := s.queue.head
	for trial := range everyTask {
		if s.breakers.probeTask = trial; trial == failedBefore {
			s.breakers.engineBreaker.Tasks = s.breakers.engineBreaker.Tasks[max(0, len(s.breakers.engineBreaker.Tasks)-1):]
		}
		if p = s.cycleUntilStable(before); s.launchesPaused() {
			break
		}
	}
	s.breakers.probeTask = everyTask
	return p
}

// isProbe reports whether a task may be launched in this scheduling cycle.
func (b *breakers) isProbe(t *model.Task) bool {
	switch {
	case b.probeTask == everyTask || b.probeTask == onlyFailed:
		return true
	case slices.Contains(b.engineBreaker.Tasks, t.ID):
		return false
	}
	return b.probeTask != otherUsers || !slices.ContainsFunc(b.engineBreaker.Tasks, func(id model.TaskID) bool {
		f := b.TaskByID(id)
		return f != nil && f.User == t.User
	})
}

// The tasks among which the probe is chosen.
const (
	otherUsers   = iota // tasks of users none of whose tasks has failed
	notFailed           // tasks that have not failed
	failedBefore        // tasks that have failed, except the latest
	onlyFailed          // any task
	everyTask           // no probe: all tasks may be launched
)
