package mapper

import (
	"slices"

	"carma/internal/units"
)

// gpuState holds everything about a GPU on which its answer to a pending task depends.
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

// markChanged finds the GPUs that have changed since the previous scheduling cycle.
func (s *State) markChanged() {
	before := s.cache.began
	s.cache.clock++
	s.cache.began = s.cache.clock
	l := &s.cache.dirty
	recent, whole := l.recent, !l.valid
	if whole {
		recent = slices.Clone(s.gpus)
	}
	for _, g := range s.refreshDirty() {
		if f := s.gpuState(g); f != g.cache.state {
			if !whole && g.cache.changedAt < l.since { // else it is among the recent ones
				recent = append(recent, g)
			}
			g.cache.state, g.cache.changedAt = f, s.cache.clock
		}
	}
	l.recent = slices.DeleteFunc(recent, func(g *GPU) bool { return g.cache.changedAt < before })
	slices.SortFunc(l.recent, comparePos)
	l.since = before
}

func (s *State) gpuState(g *GPU) gpuState {
	f := gpuState{s.rejectAny(g), s.free(g), g.OtherProcesses, g.cache.changes, s.predictor.forecastAt(g), s.predictor.extra(g), 0, g.NominatedFor}
	if s.policy.pick != nil {
		f.untold = s.untold(g)
	}
	return f
}

// markLaunched marks GPUs as changed by a launch: the GPUs of the task, and all GPUs of
// its neighbours, which may be slower now and leave room on their other GPUs.
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
	if l := &s.cache.dirty; l.valid && g.cache.changedAt < l.since {
		at, there := slices.BinarySearchFunc(l.recent, g, comparePos)
		if !there {
			l.recent = slices.Insert(l.recent, at, g)
		}
	}
	g.cache.changedAt = s.cache.clock
	g.markDirty()
}

// rejectedByAll returns the clock when a task was rejected by every GPU, or 0. The
// rejection still holds for the GPUs that have not changed since, except for the returned
// GPUs, which were reserved then and may not be now.
func (s *State) rejectedByAll(t *Task) (at int, reopened []GPUID) {
	if s.policy.pick != nil {
		s.candidatesOf(t) // the answers may have changed
	}
	tried := &t.cache.tried
	if tried.at <= s.cache.forgotten {
		return s.cachedRejection(t)
	}
	// Whether a reserved GPU can be backfilled depends on host memory, time and
	// residents.
	if kept := &tried.head; s.opt.FillHeld || kept.Task != s.queue.head.Task || kept.Until != s.queue.head.Until || !slices.Equal(kept.GPUs, s.queue.head.GPUs) {
		reopened = kept.GPUs
	}
	return tried.at, reopened
}
