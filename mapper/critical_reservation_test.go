package mapper

import (
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/interference"
	"carma/mapper/model"
)

// light hardly slows other tasks down.
var light = interference.Load{SMACT: 0.02, Step: 0.01}

// ofKind submits a light task of a kind that needs an amount of memory.
func (w *world) ofKind(mem units.Bytes, name string, edit func(*model.Request)) model.TaskID {
	w.t.Helper()
	return w.expectingWith(mem, model.Expected{Loads: loads{light}}, func(r *model.Request) {
		r.Kind = name
		if edit != nil {
			edit(r)
		}
	})
}

// reserving returns a world of three GPUs with one task each, which take 5, 1 and 2 h. The
// first task has the given memory. A critical task on two GPUs waits for the other two.
func reserving(t *testing.T, first units.Bytes) (w *world, wide model.TaskID, residents [3]model.TaskID) {
	t.Helper()
	w = newWorld(t, shortest(), 3)
	hours(w)
	for i, name := range []string{"h5", "h1", "h2"} {
		w.openOnly(i)
		residents[i] = w.ofKind([]units.Bytes{first, 25 * units.GiB, 25 * units.GiB}[i], name, nil)
		w.wantOn(residents[i], i)
	}
	w.openOnly(-1)
	wide = w.ofKind(30*units.GiB, "h10", gpus(2))
	w.wantOn(wide)
	return w, wide, residents
}

// TestGPUsAreKeptForACriticalTask checks that a critical task on two GPUs gets the two GPUs
// that are ready first. Tasks that end before may run there; others run elsewhere or wait.
func TestGPUsAreKeptForACriticalTask(t *testing.T) {
	w, wide, residents := reserving(t, 25*units.GiB)
	if w.s.ReservedFor("GPU-0") != 0 || w.s.ReservedFor("GPU-1") != wide || w.s.ReservedFor("GPU-2") != wide {
		t.Fatalf("kept free are %v for task %d", w.s.reserve.Head().GPUs, w.s.reserve.Head().Task)
	}
	if in := w.s.reserve.Head().Until.Sub(w.now); in < 2*time.Hour-time.Minute || in > 2*time.Hour+time.Minute {
		t.Errorf("they are expected to be ready in %s, want 2 h", in)
	}
	w.wantOn(w.ofKind(12*units.GiB, "h5", nil), 0)
	waits := w.ofKind(5*units.GiB, "h5", nil)
	w.wantOn(waits)
	for _, gpu := range []int{1, 2} {
		if got := w.whyNot(waits, gpu); got.Rule != model.RuleKept || got.Task != wide {
			t.Errorf("turned down for %+v", got)
		}
	}
	short := w.ofKind(5*units.GiB, "h1", nil) // ends an hour before
	if on := w.on(short); len(on) != 1 || on[0] == 0 {
		t.Errorf("one that ends in time is on %v", on)
	}
	// The critical task gets the GPUs when they are free. Then the reservation ends.
	w.wait(time.Hour)
	w.exit(short, model.ExitOK)
	w.exit(residents[1], model.ExitOK)
	w.wantOn(wide)
	w.wantOn(waits)
	w.wantOn(w.ofKind(5*units.GiB, "h2", nil)) // an hour ago it would have ended in time
	w.wait(time.Hour)
	w.exit(residents[2], model.ExitOK)
	w.wantOn(wide, 1, 2)
	if w.s.reserve.Head().Task != 0 || w.on(waits) == nil {
		t.Errorf("%v are kept free, task %d is on %v", w.s.reserve.Head().GPUs, waits, w.on(waits))
	}
}

// TestKeptGPUsAndPriority checks that a task of higher priority uses the reserved GPUs, and
// that a task that needs an exclusive GPU, or several GPUs, does not.
func TestKeptGPUsAndPriority(t *testing.T) {
	for _, row := range []struct {
		name string
		kind string
		edit func(*model.Request)
		want bool
	}{
		{"urgent", "h10", high, true},
		{"not urgent, long", "h5", low, false},
		{"not urgent, short", "h1", low, true},
		{"on two", "m5", gpus(2), false},
	} {
		t.Run(row.name, func(t *testing.T) {
			w, _, _ := reserving(t, 39*units.GiB)
			if got := w.on(w.ofKind(5*units.GiB, row.kind, row.edit)); (got != nil) != row.want {
				t.Errorf("it is on %v", got)
			}
		})
	}
}

// TestReadyAsResidentsEnd checks that a GPU is expected to be ready as soon as enough
// residents have ended, not only when all have.
func TestReadyAsResidentsEnd(t *testing.T) {
	w := newWorld(t, shortest(), 2)
	hours(w)
	for i := range 2 {
		w.openOnly(i)
		w.ofKind(20*units.GiB, "h2", nil)
		w.ofKind(5*units.GiB, "h1", nil)
		w.ofKind(5*units.GiB, "h10", nil)
	}
	w.openOnly(-1)
	wide := w.ofKind(30*units.GiB, "h10", gpus(2))
	w.wantOn(wide)
	if in := w.s.reserve.Head().Until.Sub(w.now); w.s.reserve.Head().Task != wide || in < 115*time.Minute || in > 125*time.Minute {
		t.Errorf("task %d is expected to start in %s, want 2 h", w.s.reserve.Head().Task, in)
	}
}

// TestReadyWhenNotTooSlow checks that memory is not enough: a GPU is not ready while the
// task or a neighbour would be too slow there.
func TestReadyWhenNotTooSlow(t *testing.T) {
	w := newWorld(t, shortest(), 2)
	hours(w)
	for i := range 2 {
		w.put(i, vgg128, "h1")
	}
	wide := w.expecting(model.Expected{Loads: loads{small}}, func(r *model.Request) { r.Kind, r.GPUs = "h1", 2 })
	w.wantOn(wide)
	if in := w.s.reserve.Head().Until.Sub(w.now); w.s.reserve.Head().Task != wide || in.Round(time.Minute) != time.Hour {
		t.Errorf("task %d is expected to start in %s", w.s.reserve.Head().Task, in)
	}
}

// TestNothingIsKept checks that nothing is reserved for a critical task on one GPU, which waits
// for the first GPU that fits, nor for a task that fits nowhere.
func TestNothingIsKept(t *testing.T) {
	w := newWorld(t, shortest(), 2)
	hours(w)
	for range 2 {
		w.ofKind(30*units.GiB, "h1", nil)
	}
	w.wantOn(w.ofKind(30*units.GiB, "h10", nil))
	if w.s.reserve.Head().Task != 0 {
		t.Errorf("%v are kept free for task %d", w.s.reserve.Head().GPUs, w.s.reserve.Head().Task)
	}
	w.sample(model.GPUSample{ID: "GPU-1", Fault: "ECC"})
	w.wantOn(w.ofKind(30*units.GiB, "h10", gpus(2)))
	if w.s.reserve.Head().Task != 0 {
		t.Errorf("%v are kept free for task %d, for which there are not enough", w.s.reserve.Head().GPUs, w.s.reserve.Head().Task)
	}
}
