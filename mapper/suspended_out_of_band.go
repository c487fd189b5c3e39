package mapper

import "carma/internal/units"

// SuspendedOutOfBand says that the container of an attempt that is thought to run was
// found suspended: a journal restored from an older copy does not contain the suspension.
// The attempt counts as suspended from now on, and resumes when there is room. The event
// is ignored for a task that does not run. It is also ignored for a task on several GPUs
// that has not vacated them: the driver suspends no such task, so somebody else has
// stopped it.
type SuspendedOutOfBand struct {
	At      units.Instant `json:"at"`
	Task    TaskID        `json:"task"`
	Attempt int           `json:"attempt"`
	// Left: its program has vacated its GPUs, see [VacatesOnRequest].
	Left bool `json:"left,omitempty"`
}

// ReasonFoundAway: it was found suspended, which was not in the journal.
const ReasonFoundAway ReasonCode = "found-away"

func (e SuspendedOutOfBand) when() units.Instant { return e.At }

func (SuspendedOutOfBand) kind() string { return "found-away" }

func (e SuspendedOutOfBand) about() TaskID { return e.Task }

// suspendedOutOfBand records the suspension without a check whether the driver could
// suspend the task now and whether there is host memory. The answer to its decision says
// whether it is suspended after all.
func (s *State) suspendedOutOfBand(ev SuspendedOutOfBand) {
	t := s.tasks[ev.Task]
	if t == nil || t.Phase != Running || t.Last().N != ev.Attempt || t.GPUs == 0 || t.GPUs > 1 && !ev.Left {
		return
	}
	why := Reason{Code: ReasonFoundAway}
	what := suspensionFor(why, s.onGPUs(t))
	what.InPlace = ev.Left
	s.preempter.suspendAs(t, what, why)
}
