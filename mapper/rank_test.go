package mapper

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

// sjf returns options of a strict queue by expected run time.
func sjf() model.Options {
	opt := plain()
	opt.Order, opt.LookAhead = model.OrderSJF, 1
	return opt
}

func kind(kind, family string) func(*model.Request) {
	return func(r *model.Request) { r.Kind, r.Family = kind, family }
}

// taught runs a task of each kind alone for the given time; the GPU is idle afterwards.
func taught(w *world, kinds map[string]time.Duration) {
	w.t.Helper()
	var names []string
	for name := range kinds {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		ran(w, kind(name, name[:1]), kinds[name], units.GiB)
	}
}

// ran runs a task alone with a peak of memory.
func ran(w *world, edit func(*model.Request), d time.Duration, peak units.Bytes) {
	w.t.Helper()
	id := w.submit(units.GiB, edit)
	w.started(id)
	w.wait(d)
	w.exitWith(model.Exited{Task: id, Class: model.ExitOK, Peak: peak})
	w.wantPhase(id, model.Succeeded)
}

// queue lists the waiting tasks in order.
func (w *world) queue() []model.TaskID {
	var ids []model.TaskID
	for _, task := range w.s.Tasks() {
		if w.s.Position(task.ID) > 0 {
			ids = append(ids, task.ID)
		}
	}
	slices.SortFunc(ids, func(a, b model.TaskID) int { return w.s.Position(a) - w.s.Position(b) })
	return ids
}

// TestSJF checks that the shortest expected run goes first, by the kind, else the family,
// else all runs; equal ones go by number.
func TestSJF(t *testing.T) {
	w := newWorld(t, sjf(), 1)
	taught(w, map[string]time.Duration{"a1": time.Hour, "a2": 3 * time.Hour, "b1": time.Minute, "c1": 30 * time.Minute})
	block := w.submit(40*units.GiB, nil)
	w.wantOn(block, 0)
	long := w.submit(units.GiB, kind("a2", "a"))
	unknown := w.submit(units.GiB, kind("z1", "z"))     // the mean of all: 67 m 45 s
	family := w.submit(units.GiB, kind("a9", "a"))      // the mean of a1 and a2: 2 h
	nothing := w.submit(units.GiB, nil)                 // the mean of all
	medium := w.submit(units.GiB, kind("c1", "c"))      // 30 min
	medium2 := w.submit(units.GiB, kind("c1", "other")) // the kind counts, not the family
	short := w.submit(units.GiB, kind("b1", "b"))
	urgent := w.submit(units.GiB, func(r *model.Request) { r.Kind, r.Priority = "a2", model.High })
	want := []model.TaskID{urgent, short, medium, medium2, unknown, nothing, family, long}
	if got := w.queue(); !slices.Equal(got, want) {
		t.Errorf("they wait in the order %v, want %v", got, want)
	}
	// They are launched in that order.
	first := len(w.launches)
	w.exit(block, model.ExitOK)
	var got []model.TaskID
	for _, l := range w.launches[first:] {
		got = append(got, l.Task)
	}
	if !slices.Equal(got, want) {
		t.Errorf("they are launched in the order %v, want %v", got, want)
	}
}

// TestSJFBeforeAnything checks that without any known run time the order is first come,
// first served.
func TestSJFBeforeAnything(t *testing.T) {
	w := newWorld(t, sjf(), 1)
	w.submit(40*units.GiB, nil)
	a, b, c := w.submit(units.GiB, kind("x", "x")), w.submit(units.GiB, nil), w.submit(units.GiB, kind("y", "y"))
	if got := w.queue(); !slices.Equal(got, []model.TaskID{a, b, c}) {
		t.Errorf("they wait in the order %v", got)
	}
}

// TestSJFLearns checks that the end of a task moves the waiting tasks of its kind and
// family, and no others.
func TestSJFLearns(t *testing.T) {
	w := newWorld(t, sjf(), 2)
	taught(w, map[string]time.Duration{"b1": 10 * time.Minute, "c1": 50 * time.Minute})
	w.submit(40*units.GiB, nil)
	a := w.submit(39*units.GiB, kind("a1", "a"))
	w.started(a)
	w.wantOn(a, 1)
	medium, of, like, rest := w.submit(30*units.GiB, kind("b1", "b")), w.submit(30*units.GiB, kind("a1", "a")), w.submit(30*units.GiB, kind("a2", "a")), w.submit(30*units.GiB, nil)
	if got := w.queue(); !slices.Equal(got, []model.TaskID{medium, of, like, rest}) {
		t.Fatalf("they wait in the order %v", got)
	}
	block := w.submit(39*units.GiB, high) // so that nothing is launched when a ends
	w.wait(time.Minute)
	w.exit(a, model.ExitOK)
	w.wantOn(block, 1)
	if got := w.queue(); !slices.Equal(got, []model.TaskID{of, like, medium, rest}) {
		t.Errorf("they wait in the order %v, want those like the one that took a minute first", got)
	}
	// With another order they wait in the order of submission, and then by run time again.
	fifo := sjf()
	fifo.Order = model.OrderFIFO
	w.step(model.Configured{At: w.now, Options: fifo})
	if got := w.queue(); !slices.Equal(got, []model.TaskID{medium, of, like, rest}) {
		t.Errorf("first come, first served: %v", got)
	}
	w.step(model.Configured{At: w.now, Options: sjf()})
	if got := w.queue(); !slices.Equal(got, []model.TaskID{of, like, medium, rest}) {
		t.Errorf("shortest first again: %v", got)
	}
}

// TestSJFRecovery checks that the recovery queue goes by number.
func TestSJFRecovery(t *testing.T) {
	w := newWorld(t, sjf(), 1)
	taught(w, map[string]time.Duration{"a": time.Hour, "b": time.Minute})
	long, short := w.submit(20*units.GiB, kind("a", "")), w.submit(20*units.GiB, kind("b", ""))
	w.submit(40*units.GiB, high)
	w.sample(model.GPUSample{ID: "GPU-0", OtherProcesses: 39 * units.GiB})
	w.exit(short, model.ExitEvicted)
	w.exit(long, model.ExitEvicted)
	if got := w.queue(); !slices.Equal(got[:2], []model.TaskID{long, short}) {
		t.Errorf("they recover in the order %v", got)
	}
}

// TestSJFBound checks that a stream of short tasks that fills the machine cannot overtake
// a long task indefinitely.
func TestSJFBound(t *testing.T) {
	for _, hours := range []int{1, 3} {
		t.Run(fmt.Sprintf("%d h", hours), func(t *testing.T) {
			w := newWorld(t, sjf(), 1)
			taught(w, map[string]time.Duration{"long": time.Duration(hours) * time.Hour, "short": time.Minute})
			running := w.submit(40*units.GiB, kind("short", ""))
			long := w.submit(40*units.GiB, kind("long", ""))
			from, overtaken := w.now, 0
			for w.on(long) == nil {
				next := w.submit(40*units.GiB, kind("short", ""))
				w.started(running)
				w.wait(time.Minute)
				w.exit(running, model.ExitOK)
				if w.on(next) != nil {
					overtaken++
				}
				if running = next; overtaken > 100*60 {
					t.Fatalf("overtaken %d times in %s", overtaken, w.now.Sub(from))
				}
			}
			// Only tasks that come up to 8 h later for each additional hour overtake it.
			bound := 8 * (time.Duration(hours)*time.Hour - time.Minute)
			if waited := w.now.Sub(from); waited < bound || waited > bound+5*time.Minute || overtaken < 10 {
				t.Errorf("it waited %s and was overtaken %d times, want %s", waited, overtaken, bound)
			}
		})
	}
}
