package ledger

import (
	"slices"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"

	"pgregory.net/rapid"
)

// TestTaskIndex compares the index with a list of tasks while tasks come and go.
func TestTaskIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newTaskIndex()
		var all []*model.Task
		for id := range model.TaskID(rapid.IntRange(1, 40).Draw(t, "steps")) {
			if len(all) > 0 && rapid.Bool().Draw(t, "remove") {
				i := rapid.IntRange(0, len(all)-1).Draw(t, "which")
				x.RemoveTask(all[i])
				all = slices.Delete(all, i, i+1)
			} else {
				task := &model.Task{Request: model.Request{ID: id + 1, Kind: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "kind")}, Phase: model.Queued}
				x.AddTask(task)
				all = append(all, task)
			}
			if err := x.AuditKindLinks(); err != nil {
				t.Fatal(err)
			}
			if got := x.TaskList(); !slices.Equal(got, all) {
				t.Fatalf("%d tasks, want %d", len(got), len(all))
			}
			for _, kind := range []string{"a", "b"} {
				want := slices.DeleteFunc(slices.Clone(all), func(o *model.Task) bool { return o.Kind != kind })
				slices.Reverse(want)
				if got := x.OfKind(kind); !slices.Equal(got, want) {
					t.Fatalf("of kind %s: %d tasks, want %d", kind, len(got), len(want))
				}
			}
		}
	})
}

// TestPerTask checks that a value belongs to one task, also if a later task gets the index
// of a finished one.
func TestPerTask(t *testing.T) {
	x := newTaskIndex()
	var values PerTask[int]
	first := &model.Task{Request: model.Request{ID: 1}}
	x.AddTask(first)
	*values.Of(first) = 7
	x.RemoveTask(first)
	second := &model.Task{Request: model.Request{ID: 2}}
	x.AddTask(second)
	if second.Index() != 1 || *values.Of(second) != 0 {
		t.Errorf("index %d, value %d", second.Index(), *values.Of(second))
	}
	*values.Of(second) = 8
	if copied := second.Clone(); *values.Of(copied) != 0 {
		t.Errorf("a copy of a task has the value %d", *values.Of(copied))
	}
}

// TestTimers checks that timers come back in order, each once, and none before its time.
func TestTimers(t *testing.T) {
	l := New(model.Options{}, false)
	for _, at := range []time.Duration{5, 1, 3} {
		l.SetTimer(units.Instant(0).Add(at*time.Second), Timer{})
	}
	l.SetTimer(units.Never, Timer{})
	l.NextWake()
	if d := l.Decisions(); len(d) != 1 || d[0] != (model.SetTimer{At: units.Instant(0).Add(time.Second)}) {
		t.Fatalf("%+v", d)
	}
	if _, due := l.PopTimer(); due {
		t.Error("a timer came before its time")
	}
	l.Begin(units.Instant(0).Add(3 * time.Second))
	var got []units.Instant
	for d, due := l.PopTimer(); due; d, due = l.PopTimer() {
		got = append(got, d.At)
	}
	if want := []units.Instant{units.Instant(0).Add(time.Second), units.Instant(0).Add(3 * time.Second)}; !slices.Equal(got, want) || l.NumTimers() != 1 {
		t.Errorf("%v, want %v; %d pending", got, want, l.NumTimers())
	}
}

// TestFreeMemory checks what a task takes of a GPU, and that the sums are audited.
func TestFreeMemory(t *testing.T) {
	l := New(model.Options{Headroom: units.GiB}, false)
	g := &model.GPU{GPUInfo: model.GPUInfo{ID: "a", Capacity: 10 * units.GiB}, OtherProcesses: units.GiB}
	l.AddGPU(g)
	g.Add(model.Resident{Task: 1, Grant: 3 * units.GiB}, l.Options().Headroom)
	if free := l.FreeMemory(l.GPU("a")); free != 5*units.GiB {
		t.Errorf("%s free, want 5 GiB", free)
	}
	g.Residents[0].Used = 4 * units.GiB
	if err := g.CheckSums(); err == nil {
		t.Error("a use above the grant was not settled, and the audit is silent")
	}
	g.Settle()
	if free := l.FreeMemory(g); free != 4*units.GiB {
		t.Errorf("%s free, want 4 GiB", free)
	}
}
