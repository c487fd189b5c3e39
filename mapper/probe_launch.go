package mapper

import (
	"slices"

	"carma/internal/units"
)

// place is the place of a task in the queues before its launch.
type place struct {
	Phase     Phase         `json:"phase"`
	QueuedAt  units.Instant `json:"queued_at,omitempty"`
	BlockedAt units.Instant `json:"blocked_at,omitempty"`
}

// launchesPaused reports whether nothing at all is launched now.
func (s *State) launchesPaused() bool {
	return s.now < s.notBefore || s.engineBreaker.shut(s.now) || s.launchLimitReached()
}

// launchProbe launches one probe task on a paused engine. It prefers a task of a user
// without any failed start, then a task without a failed start, then the next of the
// failed ones.
func (s *State) launchProbe() (p *cycle) {
	before := s.head
	for trial := range everyTask {
		if s.probeTask = trial; trial == failedBefore {
			s.engineBreaker.Tasks = s.engineBreaker.Tasks[max(0, len(s.engineBreaker.Tasks)-1):]
		}
		if p = s.cycleUntilStable(before); s.launchesPaused() {
			break
		}
	}
	s.probeTask = everyTask
	return p
}

// isProbe reports whether a task may be launched in this scheduling cycle.
func (s *State) isProbe(t *Task) bool {
	switch {
	case s.probeTask == everyTask || s.probeTask == onlyFailed:
		return true
	case slices.Contains(s.engineBreaker.Tasks, t.ID):
		return false
	}
	return s.probeTask != otherUsers || !slices.ContainsFunc(s.engineBreaker.Tasks, func(id TaskID) bool {
		f := s.tasks[id]
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
