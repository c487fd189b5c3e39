package mapper

import (
	"slices"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/preempt"
)

func watching(how string) model.Options {
	opt := plain()
	opt.Watchdog = how
	return opt
}

// overuse returns a sample with the memory in GiB that tasks use on GPU 0.
func overuse(uses map[model.TaskID]float64) model.GPUSample {
	s := model.GPUSample{ID: "GPU-0"}
	for id, n := range uses {
		s.Tasks = append(s.Tasks, model.TaskUse{Task: id, Used: gib(n)})
		s.Used += gib(n)
	}
	slices.SortFunc(s.Tasks, func(a, b model.TaskUse) int { return int(a.Task - b.Task) })
	return s
}

// TestWatchdogGrows checks that the grant of a task that exceeds it is raised if the card
// has room, and that this is reported.
func TestWatchdogGrows(t *testing.T) {
	w := newWorld(t, watching(model.WatchdogWarn), 1)
	a, b := w.submit(10*units.GiB, nil), w.submit(10*units.GiB, nil)
	w.started(a)
	w.started(b)
	w.sample(overuse(map[model.TaskID]float64{a: 12, b: 5}))
	w.wantGrant(a, gib(12).Scale(1.1))
	w.wantGrant(b, 10*units.GiB)
	want := model.GrantExceeded{Task: a, GPU: "GPU-0", Used: gib(12), Grant: 10 * units.GiB, Booked: gib(12).Scale(1.1)}
	if !slices.Contains(w.overuses, want) {
		t.Errorf("decided %+v, want %+v", w.overuses, want)
	}
	w.sample(overuse(map[model.TaskID]float64{a: 12, b: 5}))
	if slices.Contains(w.overuses, want) {
		t.Error("it says so twice")
	}
	if need := w.task(a).NextGrant; need != gib(12).Scale(1.1) {
		t.Errorf("it needs %s now", need)
	}
	// There is no room for a larger grant. The use counts, and nothing else happens.
	w.sample(overuse(map[model.TaskID]float64{a: 32, b: 5}))
	w.wait(time.Minute)
	w.sample(overuse(map[model.TaskID]float64{a: 32, b: 5}))
	w.wantPhase(a, model.Running)
}

// TestWatchdogOrder checks that tasks stopped at once on several GPUs are stopped in the order
// of the GPUs, even if a GPU with a higher index was short of memory first and has been checked
// since.
func TestWatchdogOrder(t *testing.T) {
	w := newWorld(t, watching(model.WatchdogRelaunch), 2)
	on := map[int][]model.TaskID{}
	for range 4 {
		id := w.submit(18*units.GiB, nil)
		w.started(id)
		on[w.on(id)[0]] = append(on[w.on(id)[0]], id)
	}
	w.submit(30*units.GiB, nil) // waits, so that GPUs are checked
	over := func(i int) {
		s := overuse(map[model.TaskID]float64{on[i][0]: 32, on[i][1]: 10})
		s.ID = gpuID(i)
		w.sample(s)
	}
	over(1)
	w.look()
	over(0)
	w.look()
	w.now = w.now.Add(preempt.OverusePatience)
	w.step(model.TimerFired{At: w.now})
	if len(w.stops) != 2 || w.stops[0].Task != on[0][0] || w.stops[1].Task != on[1][0] {
		t.Errorf("stopped %+v, want tasks %d and %d", w.stops, on[0][0], on[1][0])
	}
}

// TestWatchdogRelaunches checks that a task that uses room granted to others is run again
// with more, as after a GPU OOM. A spike, an exclusive task and a task that only uses
// free memory are left alone.
func TestWatchdogRelaunches(t *testing.T) {
	for _, row := range []struct {
		name    string
		watch   string
		uses    []float64 // use of the offender; the other task has 10 GiB and uses 5
		stopped bool
	}{
		{"it needs what the other was promised", model.WatchdogRelaunch, []float64{32, 32}, true},
		{"a spike", model.WatchdogRelaunch, []float64{32, 12}, false},
		{"within what is free", model.WatchdogRelaunch, []float64{26, 26}, false},
		{"only a warning is wanted", model.WatchdogWarn, []float64{32, 32}, false},
		{"off", model.WatchdogOff, []float64{32, 32}, false},
		{"not set", "", []float64{32, 32}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t, watching(row.watch), 1)
			a, b := w.submit(10*units.GiB, nil), w.submit(10*units.GiB, nil)
			w.started(a)
			w.started(b)
			for _, use := range row.uses {
				w.sample(overuse(map[model.TaskID]float64{a: use, b: 5}))
				w.wait(preempt.OverusePatience / 2)
			}
			w.wait(2 * preempt.OverusePatience) // the decision does not change
			if !row.stopped {
				w.wantPhase(a, model.Running)
				return
			}
			w.wantPhase(a, model.Stopping)
			w.wantPhase(b, model.Running)
			w.exitWith(model.Exited{Task: a, Class: model.ExitStopped, Code: 137})
			task := w.task(a)
			if task.OOMs != 1 || task.NotAtFault != 0 || task.Overuse || task.Phase.Finished() {
				t.Errorf("after its end: %+v", task)
			}
			if want := (gib(32).Scale(1.25) + units.GiB).Clamp(); task.NextGrant < gib(32) || task.NextGrant > want {
				t.Errorf("it needs %s", task.NextGrant)
			}
			w.exit(b, model.ExitOK)
			w.wantOn(a, 0)
		})
	}
}

// TestWatchdogLetsEnd checks that a task that succeeds or is stopped by its user after
// the watchdog's stop is not requeued.
func TestWatchdogLetsEnd(t *testing.T) {
	over := func() (*world, model.TaskID) {
		w := newWorld(t, watching(model.WatchdogRelaunch), 1)
		a, b := w.submit(10*units.GiB, nil), w.submit(10*units.GiB, nil)
		w.started(a)
		w.started(b)
		w.sample(overuse(map[model.TaskID]float64{a: 32, b: 5}))
		w.wait(2 * preempt.OverusePatience)
		w.wantPhase(a, model.Stopping)
		return w, a
	}
	w, a := over()
	w.exit(a, model.ExitOK)
	w.wantPhase(a, model.Succeeded)
	w, a = over()
	w.cancel(a)
	w.exit(a, model.ExitStopped)
	w.wantPhase(a, model.Cancelled)
}

// TestWatchdogWorst checks that the task that exceeds its grant most is stopped, one at a
// time.
func TestWatchdogWorst(t *testing.T) {
	w := newWorld(t, watching(model.WatchdogRelaunch), 1)
	a, b, c := w.submit(10*units.GiB, nil), w.submit(10*units.GiB, nil), w.submit(10*units.GiB, nil)
	for _, id := range []model.TaskID{a, b, c} {
		w.started(id)
	}
	w.sample(overuse(map[model.TaskID]float64{a: 14, b: 20, c: 5}))
	w.wait(2 * preempt.OverusePatience)
	w.wantPhase(b, model.Stopping)
	w.wantPhase(a, model.Running)
	w.wantPhase(c, model.Running)
	w.wait(2 * preempt.OverusePatience)
	w.wantPhase(a, model.Running)
}

// TestWatchdogRoomCame checks that no task is stopped when a neighbour's end has made
// room meanwhile.
func TestWatchdogRoomCame(t *testing.T) {
	w := newWorld(t, watching(model.WatchdogRelaunch), 1)
	a, b, c := w.submit(10*units.GiB, nil), w.submit(10*units.GiB, nil), w.submit(10*units.GiB, nil)
	for _, id := range []model.TaskID{a, b, c} {
		w.started(id)
	}
	w.sample(overuse(map[model.TaskID]float64{a: 22, b: 5, c: 5}))
	w.exit(c, model.ExitOK)
	w.wait(2 * preempt.OverusePatience)
	w.wantPhase(a, model.Running)
}
