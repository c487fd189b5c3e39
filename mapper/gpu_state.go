package mapper

import (
	"slices"

	"carma/internal/units"
)

// gpuState is what a task that wants a GPU sees of it.
type gpuState struct {
	rule    Rule
	free    units.Bytes
	foreign units.Bytes
	changes int
	at      units.Instant
	extra   float64
	untold  TaskID
	claim   TaskID
}

// markChanged notes which GPUs look different from the pass before.
func (s *State) markChanged() {
	before := s.cache.began
	s.cache.clock++
	s.cache.began = s.cache.clock
	l := &s.cache.looks
	recent, whole := l.recent, !l.valid
	if whole {
		recent = slices.Clone(s.gpus)
	}
	for _, g := range s.refreshDirty() {
		if f := s.gpuState(g); f != g.cache.face {
			if !whole && g.cache.fresh < l.since { // else it is among the recent ones
				recent = append(recent, g)
			}
			g.cache.face, g.cache.fresh = f, s.cache.clock
		}
	}
	l.recent = slices.DeleteFunc(recent, func(g *GPU) bool { return g.cache.fresh < before })
	slices.SortFunc(l.recent, comparePos)
	l.since = before
}

func (s *State) gpuState(g *GPU) gpuState {
	f := gpuState{s.rejectAny(g), s.free(g), g.OtherProcesses, g.cache.changes, s.forecastAt(g), s.extra(g), 0, g.NominatedFor}
	if s.policy.pick != nil {
		f.untold = s.untold(g)
	}
	return f
}

// markLaunched notes that GPUs look different since a launch: those of the task, and of
// those beside it, which may be slower now and leave room on their other GPUs.
func (s *State) markLaunched(gpus []*GPU) {
	s.cache.clock++
	for _, g := range gpus {
		for i := range g.Residents {
			for _, grant := range s.tasks[g.Residents[i].Task].Current().Grants {
				s.markChangedGPU(s.byID[grant.GPU])
			}
		}
	}
}

func (s *State) markChangedGPU(g *GPU) {
	if l := &s.cache.looks; l.valid && g.cache.fresh < l.since {
		at, there := slices.BinarySearchFunc(l.recent, g, comparePos)
		if !there {
			l.recent = slices.Insert(l.recent, at, g)
		}
	}
	g.cache.fresh = s.cache.clock
	g.markDirty()
}

// rejectedByAll is the clock when a task was rejected by every GPU. That still counts
// for the GPUs that have not changed since, except those that were kept free then
// and may not be now, which are returned. 0: there is none.
func (s *State) rejectedByAll(t *Task) (at int, reopened []GPUID) {
	if s.policy.pick != nil {
		s.candidatesOf(t) // the answers may have changed
	}
	tried := &t.cache.tried
	if tried.at <= s.cache.forgotten {
		return s.cachedRejection(t)
	}
	// Who may fill a GPU that is held depends on host memory, the time and others there.
	if kept := &tried.kept; s.opt.FillHeld || kept.Task != s.head.Task || kept.Until != s.head.Until || !slices.Equal(kept.GPUs, s.head.GPUs) {
		reopened = kept.GPUs
	}
	return tried.at, reopened
}
