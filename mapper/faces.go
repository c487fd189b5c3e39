package mapper

import (
	"slices"

	"carma/internal/units"
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
	l := &s.notes.looks
	recent, whole := l.recent, !l.valid
	if whole {
		recent = slices.Clone(s.gpus)
	}
	for _, g := range s.look() {
		if f := s.face(g); f != g.notes.face {
			if !whole && g.notes.fresh < l.since { // else it is among the recent ones
				recent = append(recent, g)
			}
			g.notes.face, g.notes.fresh = f, s.notes.clock
		}
	}
	l.recent = slices.DeleteFunc(recent, func(g *GPU) bool { return g.notes.fresh < before })
	slices.SortFunc(l.recent, comparePos)
	l.since = before
}

func (s *State) face(g *GPU) face {
	f := face{s.rejectAny(g), s.free(g), g.Foreign, g.notes.changes, s.outlookAt(g), s.extra(g), 0, g.Claim}
	if s.policy.pick != nil {
		f.untold = s.untold(g)
	}
	return f
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
	if l := &s.notes.looks; l.valid && g.notes.fresh < l.since {
		at, there := slices.BinarySearchFunc(l.recent, g, comparePos)
		if !there {
			l.recent = slices.Insert(l.recent, at, g)
		}
	}
	g.notes.fresh = s.notes.clock
	g.mark()
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
		return s.triedAlike(t)
	}
	// Who may fill a GPU that is held depends on host memory, the time and others there.
	if kept := &tried.kept; s.opt.FillHeld || kept.Task != s.kept.Task || kept.Until != s.kept.Until || !slices.Equal(kept.GPUs, s.kept.GPUs) {
		reopened = kept.GPUs
	}
	return tried.at, reopened
}
