package mapper

import "carma/mapper/interference"

// pace follows a change of who is on some GPUs: how fast each task there is
// now predicted to go. What a task has done so far is kept as the time that it
// would have taken alone.
func (s *State) pace(gpus []*GPU) {
	for _, g := range gpus {
		speeds := s.speeds(g.Residents, nil)
		for i := range g.Residents {
			g.Residents[i].Speed = speeds[i]
		}
	}
	for _, g := range gpus {
		for i := range g.Residents {
			s.repace(s.tasks[g.Residents[i].Task])
		}
	}
}

// speeds are the predicted speeds of the residents of a GPU and of a newcomer,
// if there is one, last.
func (s *State) speeds(residents []Resident, newcomer *interference.Load) []float64 {
	loads := s.loads[:0]
	for i := range residents {
		loads = append(loads, residents[i].Load)
	}
	if newcomer != nil {
		loads = append(loads, *newcomer)
	}
	s.loads = loads
	speeds := interference.Speeds(loads)
	for i := range loads {
		if loads[i].SMACT == 0 { // it holds the GPU and does not use it: nobody is in its way
			speeds[i] = 1
		}
	}
	return speeds
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
