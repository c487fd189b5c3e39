package mapper

import (
	"slices"

	"carma/mapper/units"
)

// Pinned says which GPUs a task goes to from now on; none: any. One that runs
// elsewhere is stopped as by [Recalled], and starts again there. It is ignored if
// these are fewer than the task wants.
type Pinned struct {
	At   units.Instant `json:"at"`
	Task TaskID        `json:"task"`
	GPUs []GPUID       `json:"gpus"`
	By   string        `json:"by,omitempty"`
}

func (e Pinned) when() units.Instant { return e.At }
func (Pinned) kind() string          { return "pinned" }
func (e Pinned) about() TaskID       { return e.Task }

// RulePinned: the task is to go to other GPUs.
const RulePinned Rule = "pinned"

func (s *State) pinned(ev Pinned) {
	t := s.tasks[ev.Task]
	if t == nil || t.GPUs == 0 || len(ev.GPUs) > 0 && len(ev.GPUs) < t.GPUs {
		return
	}
	t.Pinned = slices.Clone(ev.GPUs)
	slices.Sort(t.Pinned)
	t.Pinned = slices.Compact(t.Pinned)
	if len(t.Pinned) < t.GPUs {
		t.Pinned = nil
	}
	t.notes.tried, s.dirty = tried{}, true
	if t.Phase != Launching && t.Phase != Running || !slices.ContainsFunc(t.Current().Grants, func(g Grant) bool { return !t.mayGoTo(g.GPU) }) {
		return
	}
	t.Recall = &Recall{By: ev.By}
	s.stop(t, Reason{Code: ReasonMoved, Name: ev.By})
}

// mayGoTo reports whether a task is not bound to other GPUs.
func (t *Task) mayGoTo(id GPUID) bool { return len(t.Pinned) == 0 || slices.Contains(t.Pinned, id) }
