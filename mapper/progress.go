package mapper

import (
	"carma/mapper/interference"
)

// pace follows a change of who is on some GPUs: how fast each task there is
// now predicted to go. What a task has done so far is kept as the time that it
// would have taken alone.
func (s *State) pace(gpus []*GPU) {
	for _, g := range gpus {
		g.ChangedAt = s.now
		g.forget()
		var space [16]demand
		demands := space[:0]
		for i := range g.Residents {
			demands = append(demands, demandOf(g.Residents[i].Load))
		}
		var room [16]float64
		for i, speed := range speeds(room[:0], demands) {
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
func speeds(into []float64, loads []demand) []float64 {
	var space [16]interference.Task
	busy := space[:0]
	for _, l := range loads {
		if !l.idle {
			busy = append(busy, l.task)
		}
	}
	if len(busy) == len(loads) {
		return interference.Fitted.SpeedsOf(into, busy)
	}
	var room [16]float64
	of := interference.Fitted.SpeedsOf(room[:0], busy)
	for _, l := range loads {
		if l.idle {
			into = append(into, 1)
			continue
		}
		into = append(into, of[0])
		of = of[1:]
	}
	return into
}

// demand is a load as the interference model takes it.
type demand struct {
	idle bool // the task leaves the GPU idle
	task interference.Task
}

func demandOf(l interference.Load) demand {
	return demand{l.SMACT == 0, interference.Fitted.Task(l)}
}

// repace gives a task the speed of its slowest GPU.
func (s *State) repace(t *Task) {
	s.progress(t)
	for _, grant := range t.Current().Grants {
		if g := s.byID[grant.GPU]; g != nil {
			g.forget()
		}
	}
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
