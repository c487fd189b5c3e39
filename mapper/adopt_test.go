package mapper

import (
	"encoding/json"
	"reflect"
	"testing"

	"carma/internal/units"
	"carma/mapper/model"
)

// TestTakenIn checks that a container unknown to the journal becomes a running task, for any
// other known data of the task, and ends like any other task.
func TestTakenIn(t *testing.T) {
	const full = 40 * units.GiB
	grant := []model.Grant{{GPU: "b", Memory: 30 * units.GiB}}
	start := func() *State {
		s := New(DefaultOptions())
		s.Step(model.Configured{At: 1, Options: DefaultOptions()})
		s.Step(model.GPUsFound{At: 1, GPUs: []model.GPUInfo{{ID: "a", Index: 0, Capacity: full}, {ID: "b", Index: 1, Capacity: full}}})
		s.Step(model.EngineChanged{At: 1, Up: true})
		return s
	}
	submit := func(s *State, id model.TaskID) {
		s.Step(model.TaskSubmitted{At: 2, Request: model.Request{ID: id, User: "ann", GPUs: 1}})
		s.Step(model.Estimated{At: 2, Task: id, Estimate: model.Estimate{Memory: 30 * units.GiB}})
	}
	for name, c := range map[string]struct {
		before  func(*State)
		id      model.TaskID
		attempt int
		grants  []model.Grant
		last    int // the attempt that runs afterwards, or 0 if the event has no effect
	}{
		"unknown":            {func(*State) {}, 7, 1, grant, 1},
		"unknown, third":     {func(*State) {}, 7, 3, grant, 3},
		"over-booked":        {func(s *State) { submit(s, 1); submit(s, 2) }, 7, 1, grant, 1},
		"submitted":          {func(s *State) { s.Step(model.TaskSubmitted{At: 2, Request: model.Request{ID: 7}}) }, 7, 1, grant, 1},
		"queued":             {func(s *State) { submit(s, 1); submit(s, 2); submit(s, 7) }, 7, 2, grant, 2},
		"an older one runs":  {func(s *State) { submit(s, 7) }, 7, 2, grant, 2},
		"it is known":        {func(s *State) { submit(s, 7) }, 7, 1, grant, 0},
		"number of the past": {func(s *State) { submit(s, 8) }, 7, 1, grant, 1},
		"no GPU":             {func(*State) {}, 7, 1, nil, 0},
		"a GPU that is gone": {func(*State) {}, 7, 1, []model.Grant{{GPU: "gone", Memory: units.GiB}}, 1},
		"one GPU twice":      {func(*State) {}, 7, 1, append(grant, grant...), 0},
		"beside one alone": {func(s *State) {
			s.Step(model.TaskSubmitted{At: 2, Request: model.Request{ID: 1, Exclusive: true}})
			s.Step(model.Estimated{At: 2, Task: 1, Estimate: model.Estimate{Memory: units.GiB}})
		}, 7, 1, []model.Grant{{GPU: "a", Memory: 30 * units.GiB}}, 1},
		"its group is at its": {func(s *State) {
			s.Step(model.TaskSubmitted{At: 2, Request: model.Request{ID: 7, After: nil, Group: "g", Parallel: 1}})
		}, 7, 1, grant, 1},
	} {
		s := start()
		c.before(s)
		was, known := s.Clone().Task(c.id)
		ev := model.OrphanAdopted{At: 10, Request: model.Request{ID: c.id, User: "ann"}, Attempt: c.attempt, Grants: c.grants, Launched: 5}
		for _, d := range s.Clone().Step(ev) {
			if l, ok := d.(model.Launch); ok && l.Task == c.id {
				t.Errorf("%s: it is launched", name)
			}
		}
		s.Step(ev)
		if err := s.sound(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if c.last == 0 {
			is, ok := s.Task(c.id)
			if ok != known || ok && !reflect.DeepEqual(is.Attempts, was.Attempts) {
				t.Errorf("%s: changed: %+v", name, is)
			}
			continue
		}
		task, ok := s.Task(c.id)
		if !ok || task.Phase != model.Running || task.Current().N != c.last || task.Current().Launched != 5 || !reflect.DeepEqual(task.Current().Grants, c.grants) {
			t.Errorf("%s: %+v", name, task)
			continue
		}
		var again State
		b, err := json.Marshal(s)
		if err == nil {
			again = *New(DefaultOptions())
			err = again.UnmarshalJSON(b)
		}
		if err != nil {
			t.Errorf("%s: a snapshot of it: %v", name, err)
		}
		finished := false
		for _, d := range s.Step(model.Exited{At: 20, Task: c.id, Attempt: c.last, Class: model.ExitOK}) {
			f, ok := d.(model.Finish)
			finished = finished || ok && f.Task.ID == c.id && f.Task.Phase == model.Succeeded
		}
		if err := s.sound(); !finished || err != nil {
			t.Errorf("%s: its end: finished %v, %v", name, finished, err)
		}
	}
}
