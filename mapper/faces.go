package mapper

import (
	"cmp"
	"slices"

	"carma/mapper/units"
)

// face is what a task that wants a GPU sees of it.
type face struct {
	rule    Rule
	free    units.Bytes
	foreign units.Bytes
	changes int
	at      units.Instant
	extra   float64
	untold  TaskID
	claim   TaskID
}

// faces notes which GPUs look different from the pass before.
func (s *State) faces() {
	before := s.notes.began
	s.notes.clock++
	s.notes.began = s.notes.clock
	s.step.recent = s.step.recent[:0]
	for _, g := range s.gpus {
		f := face{s.rejectAny(g), s.free(g), g.Foreign, g.notes.changes, s.outlookAt(g), s.extra(g), 0, g.Claim}
		if s.policy.pick != nil {
			f.untold = s.untold(g)
		}
		if f != g.notes.face {
			g.notes.face, g.notes.fresh = f, s.notes.clock
		}
		if g.notes.fresh >= before {
			s.step.recent = append(s.step.recent, g)
		}
	}
	s.step.since = before
}

// freshen notes that GPUs look different since a launch: those of the task, and of
// those beside it, which may be slower now and leave room on their other GPUs.
func (s *State) freshen(gpus []*GPU) {
	s.notes.clock++
	for _, g := range gpus {
		for i := range g.Residents {
			for _, grant := range s.tasks[g.Residents[i].Task].Current().Grants {
				s.freshenOne(s.byID[grant.GPU])
			}
		}
	}
}

func (s *State) freshenOne(g *GPU) {
	if g.notes.fresh < s.step.since {
		at, there := slices.BinarySearchFunc(s.step.recent, g.pos, func(r *GPU, pos int) int { return cmp.Compare(r.pos, pos) })
		if !there {
			s.step.recent = slices.Insert(s.step.recent, at, g)
		}
	}
	g.notes.fresh = s.notes.clock
}

// turnedDown is the clock when a task was rejected by every GPU. That still counts
// for the GPUs that have not changed since, except those that were kept free then
// and may not be now, which are returned. 0: there is none.
func (s *State) turnedDown(t *Task) (at int, reopened []GPUID) {
	if s.policy.pick != nil {
		s.asks(t) // the answers may have changed
	}
	tried := &t.notes.tried
	if tried.at <= s.notes.forgotten {
		return 0, nil
	}
	// Who may fill a GPU that is held depends on host memory, the time and others there.
	if kept := &tried.kept; s.opt.FillHeld || kept.Task != s.kept.Task || kept.Until != s.kept.Until || !slices.Equal(kept.GPUs, s.kept.GPUs) {
		reopened = kept.GPUs
	}
	return tried.at, reopened
}
