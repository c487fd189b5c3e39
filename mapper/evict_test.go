package mapper

import (
	"testing"
	"time"

	"carma/mapper/interference"
	"carma/mapper/model"
	"carma/mapper/predict"
	"carma/mapper/preempt"
)

// slowing places a light task of kind a, measured alone, and beside it a task of kind b
// that was declared light and is heavy. The slowdown of a has not been reported.
func slowing(w *world) (a, b model.TaskID, slowed float64) {
	w.t.Helper()
	opt := w.s.Options()
	a = w.put(0, small, "a")
	w.shows(small)
	w.wait(2 * time.Minute)
	w.tells(a, 100)
	b = w.does(small, "b")
	w.wantOn(b, 0)
	if opt.Policy != "carma" {
		w.t.Fatal("this is about policy carma")
	}
	return a, b, w.shows(small, vgg128)[0]
}

// wantStops checks the number of stops for slowing others down.
func (w *world) wantStops(n int) {
	w.t.Helper()
	got := 0
	for _, s := range w.stops {
		if s.Reason.Code == model.ReasonSlowing {
			got++
		}
	}
	if got != n {
		w.t.Fatalf("%d tasks were stopped for slowing others down, want %d: %+v", got, n, w.stops)
	}
}

// TestUndo checks that a new task that slows a neighbour down beyond the cap is requeued.
// It loses no attempt, and is not placed again while the neighbour is there.
func TestUndo(t *testing.T) {
	w := newWorld(t, predicting(), 1)
	a, b, slowed := slowing(w)
	w.wait(2 * time.Minute)
	w.wantStops(0)
	w.tells(a, 100*slowed)
	w.wantStops(1)
	stop := w.stops[len(w.stops)-1]
	if stop.Task != b || stop.Reason.Task != a || stop.Reason.GPU != 0 || stop.Reason.Percent < 170 || stop.Reason.Percent > 400 {
		t.Errorf("%+v", stop)
	}
	w.wantPhase(b, model.Stopping)
	w.tells(a, 100*slowed) // a second report has no effect
	w.wantStops(1)
	w.exit(b, model.ExitStopped)
	w.wantPhase(b, model.Recovering)
	task := w.task(b)
	if task.Evictions != 1 || task.Moving || task.OOMs+task.Failures+task.NotAtFault != 0 || !task.Last().NotAtFault || task.Reason.Code != model.ReasonSlowing || task.StopReason.Code != "" {
		t.Errorf("it goes back as %+v", task)
	}
	if l := w.task(b).LoadOn(0); l.SMACT < 0.7 {
		t.Errorf("it is taken for %+v", l)
	}
	for range 10 {
		w.wait(10 * time.Minute)
		w.look()
		w.wantWhy(b, "GPU 0 slowdown task="+a.String())
	}
	w.exit(a, model.ExitOK)
	w.wantOn(b, 0)
	if n := w.task(b).Last().N; n != 2 {
		t.Errorf("attempt %d", n)
	}
}

// TestUndoOfStranger checks an unknown task that samples show to be heavy.
func TestUndoOfStranger(t *testing.T) {
	w := newWorld(t, predicting(), 2)
	w.openOnly(0)
	a := w.does(small, "a")
	b := w.expecting(model.Expected{}, kind("b", ""))
	w.wantOn(b, 0)
	w.openOnly(-1)
	w.shows(small, vgg128)
	w.wait(model.SettleTime)
	w.wantStops(1)
	w.exit(b, model.ExitStopped)
	w.wantOn(b, 1) // at once
	w.wantOn(a, 0)
	if task := w.task(b); task.Expected.Source != model.SourceSeen || len(task.Expected.Loads) == 0 || gpusUnseen(w, task) {
		t.Errorf("what was seen is forgotten: %+v", task.Expected)
	}
}

// gpusUnseen reports whether the activity of a placed task counts as unmeasured.
func gpusUnseen(w *world, t *model.Task) bool {
	for _, grant := range t.Current().Grants {
		if w.s.GPU(grant.GPU).Resident(t.ID).Unseen {
			return true
		}
	}
	return false
}

// TestNoUndo lists cases in which no task is evicted.
func TestNoUndo(t *testing.T) {
	for _, row := range []struct {
		name  string
		after time.Duration
		edit  func(w *world, b model.TaskID)
		speed float64 // factor on the predicted speed
	}{
		{"it ran for too long", preempt.EvictWithin + time.Second, nil, 1},
		{"it was moved often enough", 2 * time.Minute, func(w *world, b model.TaskID) { w.task(b).Evictions = preempt.EvictMost }, 1},
		{"it is stopping already", 2 * time.Minute, func(w *world, b model.TaskID) { w.cancel(b) }, 1},
		{"it slows nobody down so much", 2 * time.Minute, nil, 1.9},
		{"another policy", 2 * time.Minute, func(w *world, _ model.TaskID) {
			opt := w.s.Options()
			opt.Policy = "magm"
			w.step(model.Configured{At: w.now, Options: opt})
		}, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t, predicting(), 1)
			a, b, slowed := slowing(w)
			if row.speed != 1 {
				w.shows(small, resnet)
			}
			w.wait(row.after)
			if row.edit != nil {
				row.edit(w, b)
			}
			w.tells(a, 100*slowed*row.speed)
			w.look()
			w.wantStops(0)
		})
	}
}

// TestNoUndoInVain checks that the last task stays if another one slows the neighbour
// down.
func TestNoUndoInVain(t *testing.T) {
	w := newWorld(t, predicting(), 1)
	a := w.put(0, small, "a")
	w.shows(small)
	w.wait(2 * time.Minute)
	w.tells(a, 100)
	w.put(0, vgg128, "c")
	w.shows(small, vgg128)
	w.wait(preempt.EvictWithin + time.Minute)
	w.put(0, interference.Load{SMACT: 0.05, DRAMA: 0.01, SMOCC: 0.02, Step: 0.01}, "b")
	slowed := w.shows(small, vgg128, interference.Load{SMACT: 0.05, DRAMA: 0.01, SMOCC: 0.02, Step: 0.01})
	w.wait(2 * time.Minute)
	w.tells(a, 100*slowed[0])
	w.look()
	if worst := w.s.placer.Forecasts(w.s.GPU("GPU-0"))[0].SlowdownForCap(); worst < predict.DefaultSlowdownCap+preempt.EvictMargin {
		t.Errorf("a is slowed down %.2f times: this tests nothing", worst)
	}
	w.wantStops(0)
}

// TestUndoneEndsOtherwise checks that an attempt that succeeds before it is stopped counts as a
// success, and that a task that its user also stops is not requeued.
func TestUndoneEndsOtherwise(t *testing.T) {
	w := newWorld(t, predicting(), 1)
	a, b, slowed := slowing(w)
	w.wait(2 * time.Minute)
	w.tells(a, 100*slowed)
	w.wantPhase(b, model.Stopping)
	w.exit(b, model.ExitOK)
	w.wantPhase(b, model.Succeeded)

	w = newWorld(t, predicting(), 1)
	a, b, slowed = slowing(w)
	w.wait(2 * time.Minute)
	w.tells(a, 100*slowed)
	w.wantPhase(b, model.Stopping)
	w.cancel(b)
	w.exit(b, model.ExitStopped)
	w.wantPhase(b, model.Cancelled)
}

// TestEvictMost checks that a task that slows down all its neighbours is evicted EvictMost
// times, and then runs where it is.
func TestEvictMost(t *testing.T) {
	opt := predicting()
	w := newWorld(t, opt, 1)
	a, b, slowed := slowing(w)
	for range preempt.EvictMost + 2 {
		w.wait(2 * time.Minute)
		w.tells(a, 100*slowed)
		if w.task(b).Phase != model.Stopping {
			break
		}
		w.exit(b, model.ExitStopped)
		other := opt // it is placed there again
		other.Policy = "magm"
		w.step(model.Configured{At: w.now, Options: other})
		w.wantOn(b, 0)
		w.started(b)
		w.step(model.Configured{At: w.now, Options: opt})
		w.shows(small, vgg128)
	}
	w.wantStops(preempt.EvictMost)
	w.wantPhase(b, model.Running)
}

// TestNoUndoOfReturn checks that a task that has just resumed is not stopped for slowing
// another down if it ran for long before its suspension: the stop would lose the work of the
// run.
func TestNoUndoOfReturn(t *testing.T) {
	for _, row := range []struct {
		ran   time.Duration
		stops int
	}{{11 * time.Minute, 0}, {8 * time.Minute, 1}} {
		w := newWorld(t, predicting(), 1)
		a, b, slowed := slowing(w)
		w.wait(2 * time.Minute)
		attempt := w.task(b).Last()
		attempt.SuspendedTime, attempt.Back = time.Hour, w.now.Add(-time.Minute)
		attempt.Started = w.now.Add(-time.Hour - row.ran)
		w.tells(a, 100*slowed)
		w.wantStops(row.stops)
	}
}
