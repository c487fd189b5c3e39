package mapper

import (
	"slices"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

func slots(slot time.Duration) model.Options {
	opt := plain()
	opt.Slot = slot
	return opt
}

// run submits a task that needs mem and starts it if it is placed.
func (w *world) run(mem units.Bytes, edit func(*model.Request)) model.TaskID {
	w.t.Helper()
	id := w.submit(mem, edit)
	if w.on(id) != nil {
		w.started(id)
	}
	return id
}

// stopped returns the tasks that were asked to stop.
func (w *world) stopped() (ids []model.TaskID) {
	for _, s := range w.stops {
		ids = append(ids, s.Task)
	}
	return ids
}

// TestSlotStops checks which tasks are asked to stop, two hours after all were submitted.
func TestSlotStops(t *testing.T) {
	slot := func(d time.Duration) func(*model.Request) { return func(r *model.Request) { r.Slot = d } }
	for _, row := range []struct {
		name string
		opt  model.Options
		gpus int
		do   func(w *world)
		want []model.TaskID
	}{
		{"for one that waits", slots(time.Hour), 1, func(w *world) { w.run(30*units.GiB, nil); w.run(30*units.GiB, nil) }, []model.TaskID{1}},
		{"not when nobody waits", slots(time.Hour), 1, func(w *world) { w.run(30*units.GiB, nil) }, nil},
		{"not before", slots(3 * time.Hour), 1, func(w *world) { w.run(30*units.GiB, nil); w.run(30*units.GiB, nil) }, nil},
		{"not when off", slots(0), 1, func(w *world) { w.run(30*units.GiB, nil); w.run(30*units.GiB, nil) }, nil},
		{"its own slot, the option off", slots(0), 1, func(w *world) { w.run(30*units.GiB, slot(time.Hour)); w.run(30*units.GiB, nil) }, []model.TaskID{1}},
		{"its own slot, shorter", slots(9 * time.Hour), 1, func(w *world) { w.run(30*units.GiB, slot(time.Hour)); w.run(30*units.GiB, nil) }, []model.TaskID{1}},
		{"not one that has not started", slots(time.Hour), 1, func(w *world) { w.submit(30*units.GiB, nil); w.run(30*units.GiB, nil) }, nil},
		{"as few as needed", slots(time.Hour), 1, func(w *world) {
			for range 4 {
				w.run(10*units.GiB, nil)
			}
			w.run(15*units.GiB, nil)
		}, []model.TaskID{1, 2}},
		{"one each for two that wait", slots(time.Hour), 1, func(w *world) {
			for range 6 {
				w.run(10*units.GiB, nil)
			}
		}, []model.TaskID{1, 2}},
		{"one place for two small ones", slots(time.Hour), 2, func(w *world) {
			w.run(40*units.GiB, nil)
			w.run(40*units.GiB, nil)
			w.run(20*units.GiB, nil)
			w.run(20*units.GiB, nil)
		}, []model.TaskID{1}},
		{"not when it would not fit even then", slots(time.Hour), 1, func(w *world) {
			w.run(20*units.GiB, slot(time.Minute))
			w.step(model.Configured{At: w.now, Options: slots(0)})
			w.run(20*units.GiB, nil)
			w.run(30*units.GiB, nil)
		}, nil},
		{"not on two GPUs for one that needs three", slots(time.Hour), 2, func(w *world) { w.run(30*units.GiB, gpus(2)); w.run(30*units.GiB, gpus(3)) }, nil},
		{"all that it needs on two GPUs", slots(time.Hour), 2, func(w *world) { w.run(30*units.GiB, nil); w.run(30*units.GiB, nil); w.run(30*units.GiB, gpus(2)) }, []model.TaskID{1, 2}},
		{"one on two GPUs for one on one", slots(time.Hour), 2, func(w *world) { w.run(30*units.GiB, gpus(2)); w.run(30*units.GiB, nil) }, []model.TaskID{1}},
		{"not for a lower priority", slots(time.Hour), 1, func(w *world) { w.run(30*units.GiB, nil); w.run(30*units.GiB, low) }, nil},
		{"for a higher one", slots(time.Hour), 1, func(w *world) { w.run(30*units.GiB, low); w.run(30*units.GiB, nil) }, []model.TaskID{1}},
		{"not for one over its quota", func() model.Options { o := slots(time.Hour); o.QuotaTasks = 1; return o }(), 1, func(w *world) {
			w.run(30*units.GiB, by("ada"))
			w.run(30*units.GiB, by("ada"))
		}, nil},
		{"not for one who has had more", func() model.Options { o := slots(time.Hour); o.Order = model.OrderFair; return o }(), 2, func(w *world) {
			w.run(30*units.GiB, by("ada"))
			w.run(30*units.GiB, func(r *model.Request) { r.User, r.Exclusive = "bob", true })
			w.run(30*units.GiB, by("bob"))
		}, []model.TaskID{2}},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t, row.opt, row.gpus)
			row.do(w)
			w.wait(2 * time.Hour)
			got := w.stopped()
			slices.Sort(got)
			if !slices.Equal(got, row.want) {
				t.Errorf("stopped %v, want %v", got, row.want)
			}
		})
	}
}

// TestSlotTurns checks that a task stopped after its slot is at the back of the queue,
// has spent no retry, and is not stopped again before its next slot is over.
func TestSlotTurns(t *testing.T) {
	w := newWorld(t, slots(time.Hour), 1)
	a := w.run(30*units.GiB, nil)
	b := w.run(30*units.GiB, nil)
	w.wait(time.Hour)
	if got := w.stops; len(got) != 1 || say(got[0].Reason) != "slot-used span=1h0m0s" {
		t.Fatalf("%+v", got)
	}
	c := w.submit(30*units.GiB, nil) // before the first task is at the back of the queue
	w.wait(time.Minute)
	w.look()
	w.exit(a, model.ExitStopped)
	w.wantPhase(a, model.Queued)
	if task := w.task(a); !task.Last().NotAtFault || task.NotAtFault != 0 || task.Failures != 0 || say(task.Reason) != "slot-used span=1h0m0s" {
		t.Errorf("%+v", task)
	}
	d := w.submit(30*units.GiB, nil)
	for i, id := range []model.TaskID{c, a, d} {
		if got := w.s.Position(id); got != i+1 {
			t.Errorf("task %d is at place %d, want %d", id, got, i+1)
		}
	}
	turn := func(id model.TaskID) {
		w.wantOn(id, 0)
		w.started(id)
		w.wait(time.Hour - 1)
		before := len(w.stops)
		w.look()
		if len(w.stops) != before {
			t.Errorf("task %d was stopped before its slot was over", id)
		}
		w.wait(1)
		if len(w.stops) != before+1 || w.stops[before].Task != id {
			t.Fatalf("stops %+v, want task %d", w.stops, id)
		}
		w.exit(id, model.ExitStopped)
	}
	for range 2 {
		for _, id := range []model.TaskID{b, c, a, d} {
			turn(id)
		}
	}
}

// TestSlotEnds lists how an attempt that is stopped after its slot can end.
func TestSlotEnds(t *testing.T) {
	for _, row := range []struct {
		name string
		do   func(w *world, id model.TaskID)
		want model.Phase
	}{
		{"it succeeds", func(w *world, id model.TaskID) { w.exit(id, model.ExitOK) }, model.Succeeded},
		{"it is killed", func(w *world, id model.TaskID) { w.exit(id, model.ExitStopped) }, model.Queued},
		{"it fails", func(w *world, id model.TaskID) { w.exit(id, model.ExitProgram) }, model.Queued},
		{"its user stops it", func(w *world, id model.TaskID) { w.cancel(id); w.exit(id, model.ExitStopped) }, model.Cancelled},
		{"it had failed before", func(w *world, id model.TaskID) {
			w.exitWith(model.Exited{Task: id, Class: model.ExitProgram, Finished: w.now.Add(-90 * time.Minute)})
		}, model.Failed},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t, slots(time.Hour), 1)
			id := w.run(30*units.GiB, nil)
			next := w.run(30*units.GiB, nil)
			w.wait(2 * time.Hour)
			w.wantPhase(id, model.Stopping)
			row.do(w, id)
			w.wantPhase(id, row.want)
			w.wantOn(next, 0)
		})
	}
}

// TestSlotOfTheLongest checks that, under policy carma too, a task stopped after its slot
// goes behind the task for which it was stopped, however long its own run is.
func TestSlotOfTheLongest(t *testing.T) {
	w := newWorld(t, DefaultsOf("carma"), 1)
	expecting := func(run, slot time.Duration) model.TaskID {
		id := w.submitOnly(func(r *model.Request) { r.Exclusive, r.Slot = true, slot })
		w.step(model.Estimated{At: w.now, Task: id, Estimate: model.Estimate{WholeGPU: true}, Expected: model.Expected{RunTime: run}})
		return id
	}
	long := expecting(140*time.Second, 12*time.Second)
	w.started(long)
	short := expecting(10*time.Second, 0)
	w.wait(20 * time.Second)
	w.wantPhase(long, model.Stopping)
	w.exit(long, model.ExitStopped)
	w.wait(time.Second)
	w.wantOn(short, 0)
	w.wantPhase(long, model.Queued)
}
