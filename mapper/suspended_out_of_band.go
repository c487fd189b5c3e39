package mapper

import "carma/internal/units"

// SuspendedOutOfBand says that the container of an attempt that is thought to run was found off
// its GPUs: a journal that was set back to an older copy does not know that it was
// suspended. It counts as suspended from now on, and comes back when there is room. A
// task that does not run is left as it is; so is one on several GPUs that has not left
// by itself, because the driver suspends none of these: somebody else has stopped it.
type SuspendedOutOfBand struct {
	At      units.Instant `json:"at"`
	Task    TaskID        `json:"task"`
	Attempt int           `json:"attempt"`
	// Left: its program has left by itself, see [VacatesOnRequest].
	Left bool `json:"left,omitempty"`
}

// ReasonFoundAway: it was found suspended, which the journal had lost.
const ReasonFoundAway ReasonCode = "found-away"

func (e SuspendedOutOfBand) when() units.Instant { return e.At }

func (SuspendedOutOfBand) kind() string { return "found-away" }

func (e SuspendedOutOfBand) about() TaskID { return e.Task }

// suspendedOutOfBand books what is the case: whether the driver could suspend it now, and
// whether there is host memory for it, is not asked. The answer to its decision says
// whether it is suspended after all.
func (s *State) suspendedOutOfBand(ev SuspendedOutOfBand) {
	t := s.tasks[ev.Task]
	if t == nil || t.Phase != Running || t.Last().N != ev.Attempt || t.GPUs == 0 || t.GPUs > 1 && !ev.Left {
		return
	}
	why := Reason{Code: ReasonFoundAway}
	what := suspensionFor(why, s.onGPUs(t))
	what.InPlace = ev.Left
	s.suspendAs(t, what, why)
}
