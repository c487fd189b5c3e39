package mapper

import (
	"testing"

	"carma/internal/units"
	"carma/mapper/model"
)

// hands reports that the engine has accepted a task's attempt, and returns the launches
// after it.
func (w *world) hands(id model.TaskID) []model.Launch {
	return w.step(model.LaunchAccepted{At: w.now, Task: id, Attempt: w.attempt(id)})
}

// TestLaunchesAtOnce checks that launches beyond the limit stay in the queue, where a task of
// higher priority can pass them and a stop loses no work, until the engine has accepted the
// earlier ones.
func TestLaunchesAtOnce(t *testing.T) {
	opt := plain()
	opt.LaunchesAtOnce = 2
	w := newWorld(t, opt, 8)
	var ids []model.TaskID
	for range 5 {
		ids = append(ids, w.submit(units.GiB, nil))
	}
	w.wantOn(ids[0], 0)
	w.wantOn(ids[1], 1)
	if why, _ := w.s.Why(ids[2]); sayWhy(why) != "handing count=2 limit=2" {
		t.Errorf("it waits because %q", sayWhy(why))
	}
	w.step(model.Cancel{At: w.now, Task: ids[2]})
	urgent := w.submit(units.GiB, func(r *model.Request) { r.Priority = 1 })
	if got := w.hands(ids[1]); len(got) != 1 || got[0].Task != urgent {
		t.Errorf("when one of them was handed over: %+v", got)
	}
	if got := w.hands(ids[1]); len(got) != 0 {
		t.Errorf("when it was told twice: %+v", got)
	}
	w.started(urgent) // not reported as accepted, but started
	w.wantOn(ids[3], 3)
	w.exit(ids[0], model.ExitInfrastructure) // before it was accepted
	w.wantOn(ids[4], 0)

	opt.LaunchesAtOnce = 1
	w.step(model.Configured{At: w.now, Options: opt, Format: model.DecisionFormat})
	last := w.submit(units.GiB, nil)
	if got := w.hands(ids[3]); len(got) != 0 {
		t.Errorf("with a limit of one, and another on its way: %+v", got)
	}
	opt.LaunchesAtOnce = 0
	w.step(model.Configured{At: w.now, Options: opt, Format: model.DecisionFormat})
	if n := w.s.attempts.InFlight(); n != 0 {
		t.Errorf("without a limit %d launches are counted", n)
	}
	if task, _ := w.s.Task(last); task.Phase != model.Launching {
		t.Errorf("without a limit it is %s", task.Phase)
	}
}
