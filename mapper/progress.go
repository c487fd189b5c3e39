package mapper

import (
	"slices"

	"carma/mapper/interference"
)

// pace follows a change of who is on some GPUs: how fast each task there is
// now predicted to go. What a task has done so far is kept as the time that it
// would have taken alone.
func (s *State) pace(gpus []*GPU) {
	for _, g := range gpus {
		g.ChangedAt = s.now
		loads := s.loads[:0]
		for i := range g.Residents {
			loads = append(loads, g.Residents[i].Load)
		}
		s.loads = loads
		for i, speed := range speeds(loads) {
			g.Residents[i].Speed = speed
		}
	}
	for _, g := range gpus {
		for i := range g.Residents {
			s.repace(s.tasks[g.Residents[i].Task])
		}
	}
}

// speeds are the predicted speeds of tasks on one GPU. One that leaves it idle
// is in nobody's way, and nobody in its.
func speeds(loads []interference.Load) []float64 {
	idle := func(l interference.Load) bool { return l.SMACT == 0 }
	if !slices.ContainsFunc(loads, idle) {
		return interference.Speeds(loads)
	}
	busy := interference.Speeds(slices.DeleteFunc(slices.Clone(loads), idle))
	all := make([]float64, len(loads))
	for i, l := range loads {
		all[i] = 1
		if !idle(l) {
			all[i], busy = busy[0], busy[1:]
		}
	}
	return all
}

// repace gives a task the speed of its slowest GPU.
func (s *State) repace(t *Task) {
	s.progress(t)
	t.Speed = 1
	for _, grant := range t.Current().Grants {
		if g := s.byID[grant.GPU]; g != nil {
			if r := g.resident(t.ID); r != nil {
				t.Speed = min(t.Speed, r.Speed)
			}
		}
	}
}

// progress brings what a running task has done up to now.
func (s *State) progress(t *Task) {
	if a := t.Current(); a != nil && a.Started > 0 {
		from := max(t.PacedAt, a.Started)
		t.Done += s.now.Sub(from).Seconds() * t.Speed
	}
	t.PacedAt = s.now
}
