package mapper

import (
	"math"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/predict"
)

const (
	// foreseenFor is the longest forecast time until a start.
	foreseenFor = 24 * time.Hour
	// foreseenSteps bounds the number of simulated ends and timers.
	foreseenSteps = 400
)

// ExpectedStart returns the time until a waiting task is expected to start, if no task
// that goes first is submitted before. from assumes that tasks run as long as expected.
// to assumes that tasks run late, as far as is likely; it is negative if it exceeds
// foreseenFor or is not known. ok is false if from is not known, if the task does not
// wait, or if it waits for its namespace, whose other users are not known.
//
// ExpectedStart simulates the state's own decisions on a copy, without samples, and ends
// after foreseenFor or foreseenSteps. It does not change the state.
func (s *State) ExpectedStart(id model.TaskID) (from, to time.Duration, ok bool) {
	t := s.TaskByID(id)
	if t == nil || t.Phase == model.Estimating || t.Phase.Placed() || t.Phase == model.Suspended && !t.Waiting() || s.breakers.AwaitsNamespace(t) {
		return 0, 0, false
	}
	var likely startForecast
	likely.of(s)
	if from, ok = likely.start(id); !ok {
		return 0, 0, false
	}
	late := startForecast{late: true}
	late.of(s)
	if to, ok = late.start(id); !ok {
		return from, -1, true
	}
	return from, max(from, to), true
}

// startForecast simulates what a state will do.
type startForecast struct {
	s    *State
	late bool // tasks run late
	// whole is the total work of the attempts looked up so far, in seconds alone.
	whole map[model.TaskID]attemptWork
	next  []model.Event // events that are due now
}

type attemptWork struct {
	attempt int
	seconds float64
}

// of begins with a copy of a state. It assumes that all launched containers start now.
func (f *startForecast) of(s *State) {
	f.s, f.whole = s.Clone(), map[model.TaskID]attemptWork{}
	f.s.ClearDecisions()
	for _, g := range f.s.GPUList() {
		for i := range g.Residents {
			switch t := f.s.TaskByID(g.Residents[i].Task); {
			case t.Current().Started == 0:
				f.next = append(f.next, model.Started{At: s.Now(), Task: t.ID, Attempt: t.Current().N})
			case t.Phase == model.Suspending:
				f.next = append(f.next, model.SuspendDone{At: s.Now(), Task: t.ID, Attempt: t.Current().N})
			case t.Phase == model.Resuming:
				f.next = append(f.next, model.Resumed{At: s.Now(), Task: t.ID, Attempt: t.Current().N})
			}
		}
	}
	for _, h := range f.s.HostList() {
		h.Available = 0 // it is valid for the present only
	}
	for _, t := range f.s.WithoutGPU() {
		if t.Current().Started == 0 {
			f.next = append(f.next, model.Started{At: s.Now(), Task: t.ID, Attempt: t.Current().N})
		}
	}
	f.s.MarkDirty()
	f.next = append(f.next, model.TimerFired{At: s.Now()})
}

// start simulates until a task is launched, and returns how long that takes.
func (f *startForecast) start(id model.TaskID) (time.Duration, bool) {
	began := f.s.Now()
	for range foreseenSteps {
		if len(f.next) == 0 && !f.ahead(began.Add(foreseenFor)) {
			return 0, false
		}
		ev := f.next[0]
		f.next = f.next[1:]
		switch ev := ev.(type) {
		case model.Started:
			f.uses(ev.Task, 1)
		case model.Exited:
			f.uses(ev.Task, -1)
		}
		for _, d := range f.s.Step(ev) {
			switch d := d.(type) {
			case model.Launch:
				if d.Task == id {
					return f.s.Now().Sub(began), true
				}
				f.next = append(f.next, model.Started{At: f.s.Now(), Task: d.Task, Attempt: d.Attempt})
			case model.Suspend:
				f.next = append(f.next, model.SuspendDone{At: f.s.Now(), Task: d.Task, Attempt: d.Attempt})
			case model.Resume:
				if d.Task == id {
					return f.s.Now().Sub(began), true
				}
				f.next = append(f.next, model.Resumed{At: f.s.Now(), Task: d.Task, Attempt: d.Attempt})
			case model.Stop:
				f.next = append(f.next, model.Exited{At: f.s.Now(), Task: d.Task, Attempt: d.Attempt, Class: model.ExitStopped})
			case model.Finish:
				if d.Task.ID == id {
					return 0, false
				}
			}
		}
	}
	return 0, false
}

// ahead finds the next event: the end of a task, or a timer. It returns false if there is
// none before an instant.
func (f *startForecast) ahead(until units.Instant) bool {
	first, ends := until, (*model.Task)(nil)
	for _, g := range f.s.GPUList() {
		for i := range g.Residents {
			t := f.s.TaskByID(g.Residents[i].Task)
			if at := f.ends(t); at < first || at == first && ends != nil && t.ID < ends.ID {
				first, ends = at, t
			}
		}
	}
	for _, t := range f.s.WithoutGPU() {
		if at := f.ends(t); at < first || at == first && ends != nil && t.ID < ends.ID {
			first, ends = at, t
		}
	}
	wake, ok := f.s.NextTimer()
	switch {
	case ok && wake < first:
		f.next = append(f.next, model.TimerFired{At: max(wake, f.s.Now())})
	case ends != nil:
		f.next = append(f.next, model.Exited{At: first, Task: ends.ID, Attempt: ends.Current().N, Class: model.ExitOK})
	default:
		return false
	}
	return true
}

// ends returns the expected end of a task at its present speed. The total work of an
// attempt is fixed when it is first looked up.
func (f *startForecast) ends(t *model.Task) units.Instant {
	a := t.Current()
	if a == nil || a.Started == 0 {
		return units.Never
	}
	done := t.DoneBy(f.s.Now())
	w := f.whole[t.ID]
	if w.attempt != a.N {
		left, basis := f.s.predictor.WorkLeft(t, done)
		if basis == predict.Guessed && !f.s.predictor.KnowsRuns() { // nothing to guess by
			return units.Never
		}
		if f.late {
			left *= basis.Lateness()
		}
		w = attemptWork{a.N, done + left}
		f.whole[t.ID] = w
	}
	left := (w.seconds - done) / t.Speed
	return f.s.Now().Add(time.Duration(math.Ceil(min(max(left, 0), 1e9) * float64(time.Second))))
}

// uses adds a task's use to the samples of its GPUs; by is 1, or -1 to subtract it.
func (f *startForecast) uses(id model.TaskID, by float64) {
	t := f.s.TaskByID(id)
	if t == nil || t.Current() == nil {
		return
	}
	for _, grant := range t.Current().Grants {
		g := f.s.GPU(grant.GPU)
		if r := g.Resident(id); r != nil {
			g.Used = max(0, g.Used+r.Used.Scale(by))
			g.SMACT = model.Fraction(g.SMACT + by*r.Load.SMACT*r.Speed)
			g.Changed()
		}
	}
}
