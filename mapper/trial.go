package mapper

import (
	"slices"

	"carma/internal/units"
)

// place is where a task stood in the queues before its launch.
type place struct {
	Phase     Phase         `json:"phase"`
	QueuedAt  units.Instant `json:"queued_at,omitempty"`
	BlockedAt units.Instant `json:"blocked_at,omitempty"`
}

// shut reports whether nothing at all is launched now.
func (s *State) shut() bool { return s.now < s.notBefore || s.sick.shut(s.now) || s.handsFull() }

// test launches one task on a paused engine. It prefers a user none of whose
// tasks has failed to start, then a task that has not failed itself, then the
// next of the failed ones.
func (s *State) test() (p *pass) {
	before := s.kept
	for trial := range everyTask {
		if s.trial = trial; trial == failedBefore {
			s.sick.Tasks = s.sick.Tasks[max(0, len(s.sick.Tasks)-1):]
		}
		if p = s.inOrder(before); s.shut() {
			break
		}
	}
	s.trial = everyTask
	return p
}

// onTrial reports whether a task may be launched in this pass.
func (s *State) onTrial(t *Task) bool {
	switch {
	case s.trial == everyTask || s.trial == onlyFailed:
		return true
	case slices.Contains(s.sick.Tasks, t.ID):
		return false
	}
	return s.trial != otherUsers || !slices.ContainsFunc(s.sick.Tasks, func(id TaskID) bool {
		f := s.tasks[id]
		return f != nil && f.User == t.User
	})
}

// Whom a test launch is looked for among.
const (
	otherUsers   = iota // tasks of users none of whose tasks has failed
	notFailed           // tasks that have not failed
	failedBefore        // tasks that have failed, but the last of them
	onlyFailed          // any task
	everyTask           // it is not a test
)
