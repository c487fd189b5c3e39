package mapper

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/interference"
	"carma/mapper/model"
	"carma/mapper/predict"
)

func learning() model.Options {
	opt := plain()
	opt.Learn = true
	return opt
}

// TestRecall checks that the memory used by earlier runs plus a margin replaces the
// estimate, if option Learn is on.
func TestRecall(t *testing.T) {
	for _, row := range []struct {
		name  string
		learn bool
		peaks []units.Bytes // peaks of the earlier runs
		kind  string
		want  model.Estimate
	}{
		{"a share more", true, []units.Bytes{20 * units.GiB}, "k", model.Estimate{Memory: (20 * units.GiB).Scale(1.03), Method: "history"}},
		{"at least 128 MiB more", true, []units.Bytes{units.GiB}, "k", model.Estimate{Memory: units.GiB + 128*units.MiB, Method: "history"}},
		{"the highest of several", true, []units.Bytes{5 * units.GiB, 10 * units.GiB, 7 * units.GiB}, "k", model.Estimate{Memory: (10 * units.GiB).Scale(1.03), Method: "history"}},
		{"another kind", true, []units.Bytes{20 * units.GiB}, "l", model.Estimate{Memory: 2 * units.GiB}},
		{"no kind", true, []units.Bytes{20 * units.GiB}, "", model.Estimate{Memory: 2 * units.GiB}},
		{"nothing seen", true, []units.Bytes{0}, "k", model.Estimate{Memory: 2 * units.GiB}},
		{"no run yet", true, nil, "k", model.Estimate{Memory: 2 * units.GiB}},
		{"not wanted", false, []units.Bytes{20 * units.GiB}, "k", model.Estimate{Memory: 2 * units.GiB}},
		// A run that fills the machine is not rejected the next time.
		{"nearly all there is", true, []units.Bytes{gib(39.9)}, "k", model.Estimate{WholeGPU: true, Large: true, Method: "history"}},
		{"just fits", true, []units.Bytes{gib(38.8)}, "k", model.Estimate{Memory: gib(38.8).Scale(1.03), Method: "history"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			opt := learning()
			opt.Learn = row.learn
			w := newWorld(t, opt, 1)
			for _, peak := range row.peaks {
				id := w.submit(2*units.GiB, kind("k", "f"))
				w.started(id)
				w.wait(time.Minute)
				w.exitWith(model.Exited{Task: id, Class: model.ExitOK, Peak: peak})
			}
			id := w.submit(2*units.GiB, kind(row.kind, "f"))
			w.wantOn(id, 0)
			if got := w.task(id).Estimate; got != row.want {
				t.Errorf("estimated %+v, want %+v", got, row.want)
			}
			if got, want := w.task(id).NextGrant, row.want.Memory; got != want {
				t.Errorf("it needs %s, want %s", got, want)
			}
		})
	}
}

// TestLearnWithoutSuccess checks that an unsuccessful attempt gives a lower bound of the
// memory, and no run time.
func TestLearnWithoutSuccess(t *testing.T) {
	for _, row := range []struct {
		name     string
		end      model.Exited
		estimate units.Bytes
		want     model.Estimate
	}{
		{"used more than the estimate", model.Exited{Class: model.ExitProgram, Peak: 8 * units.GiB}, units.GiB, model.Estimate{Memory: 11 * units.GiB, Method: "history"}},
		{"stopped", model.Exited{Class: model.ExitStopped, Peak: 8 * units.GiB}, units.GiB, model.Estimate{Memory: 11 * units.GiB, Method: "history"}},
		{"used less", model.Exited{Class: model.ExitProgram, Peak: 8 * units.GiB}, 9 * units.GiB, model.Estimate{Memory: 9 * units.GiB}},
		{"wanted more", model.Exited{Class: model.ExitGPUOOM, Peak: 2 * units.GiB, Demand: 16 * units.GiB}, units.GiB, model.Estimate{Memory: 21 * units.GiB, Method: "history"}},
		{"wanted nearly all", model.Exited{Class: model.ExitGPUOOM, Demand: 35 * units.GiB}, units.GiB, model.Estimate{WholeGPU: true, Large: true, Method: "history"}},
		{"not seen", model.Exited{Class: model.ExitHostOOM}, units.GiB, model.Estimate{Memory: units.GiB}},
	} {
		t.Run(row.name, func(t *testing.T) {
			opt := learning()
			opt.Attempts = 1
			w := newWorld(t, opt, 1)
			id := w.submit(row.estimate, kind("k", ""))
			w.started(id)
			row.end.Task = id
			w.exitWith(row.end)
			id = w.submit(row.estimate, kind("k", ""))
			if got := w.task(id).Estimate; got != row.want {
				t.Errorf("estimated %+v, want %+v", got, row.want)
			}
			if _, b := w.s.predictor.RunTime(w.s.TaskByID(id)); b == predict.Known {
				t.Error("its run time is taken to be known")
			}
		})
	}
}

// TestRuns checks that Runs lists the runs of one program by batch size, and no others.
func TestRuns(t *testing.T) {
	w := newWorld(t, learning(), 1)
	program := func(kind, program string, batch int) func(*model.Request) {
		return func(r *model.Request) { r.Kind, r.Program, r.Batch = kind, program, batch }
	}
	for i, peak := range []units.Bytes{4 * units.GiB, 8 * units.GiB, 6 * units.GiB, 0} {
		batch, name := 32<<i, "p"
		if i == 2 {
			name = "q"
		}
		id := w.submit(units.GiB, program(fmt.Sprint("k", i), name, batch))
		w.started(id)
		w.exitWith(model.Exited{Task: id, Class: model.ExitOK, Peak: peak})
	}
	if got, want := w.s.Runs("p"), []predict.Run{{Batch: 32, Peak: 4 * units.GiB}, {Batch: 64, Peak: 8 * units.GiB}}; !reflect.DeepEqual(got, want) {
		t.Errorf("runs of p: %v, want %v", got, want)
	}
	if got := w.s.Runs(""); got != nil {
		t.Errorf("runs of a task without a program: %v", got)
	}
	if !w.s.Recalls("k0") || w.s.Recalls("k3") || w.s.Recalls("k9") {
		t.Error("recalls what it has not seen, or not what it has")
	}
}

// TestRunTimeAlone checks that a run slowed down by a neighbour counts with the time that it
// would have taken alone.
func TestRunTimeAlone(t *testing.T) {
	speed := interference.Speeds([]interference.Load{resnet, resnet})[0]
	if speed > 0.9 {
		t.Fatal("they do not disturb each other: this tests nothing")
	}
	w := newWorld(t, learning(), 1)
	submit := func(name string) model.TaskID {
		id := w.submitOnly(kind(name, ""))
		w.step(model.Estimated{At: w.now, Task: id, Estimate: model.Estimate{Memory: units.GiB}, Expected: model.Expected{Loads: []interference.Load{resnet}}})
		w.started(id)
		return id
	}
	a := submit("a")
	w.wait(10 * time.Minute) // alone
	b := submit("b")
	w.wait(10 * time.Minute) // together
	w.exit(a, model.ExitOK)
	w.wait(10 * time.Minute) // alone again
	w.exit(b, model.ExitOK)
	want := time.Duration((1 + speed) * float64(10*time.Minute))
	for _, name := range []string{"a", "b"} {
		if got := w.s.kindHistory(name).Alone; (got - want).Abs() > time.Millisecond {
			t.Errorf("%s is said to take %s alone, want %s", name, got, want)
		}
	}
}

// TestRunTimeMean checks that each later run has a weight of at least 1/16.
func TestRunTimeMean(t *testing.T) {
	w := newWorld(t, learning(), 1)
	for i := range 40 {
		ran(w, kind("k", ""), time.Duration(10+20*(i%2))*time.Minute, units.GiB)
	}
	if got := w.s.kindHistory("k"); got.Runs != 16 || got.Alone < 18*time.Minute || got.Alone > 22*time.Minute {
		t.Errorf("after 40 runs of 10 and 30 min: %s, %d", got.Alone, got.Runs)
	}
	for range 60 {
		ran(w, kind("k", ""), time.Hour, units.GiB)
	}
	if got := w.s.kindHistory("k").Alone; got < 55*time.Minute {
		t.Errorf("it has taken an hour for long, and is said to take %s", got)
	}
}

// TestRunTimeWithoutTheDaemon checks that the time after an unobserved end does not count, and
// that a run that no daemon observed does not count at all.
func TestRunTimeWithoutTheDaemon(t *testing.T) {
	w := newWorld(t, learning(), 1)
	a := w.submit(units.GiB, kind("k", ""))
	w.started(a)
	w.wait(10 * time.Minute)
	end := w.now
	w.wait(5 * time.Hour)
	w.exitWith(model.Exited{Task: a, Class: model.ExitOK, Finished: end, Peak: units.GiB})
	if got := w.s.kindHistory("k").Alone; got != 10*time.Minute {
		t.Errorf("it ran for 10 min, and is said to take %s", got)
	}
	b := w.submit(units.GiB, kind("k", ""))
	w.exit(b, model.ExitOK)
	if got := w.s.kindHistory("k").Alone; got != 10*time.Minute {
		t.Errorf("after one that was not seen to run it is said to take %s", got)
	}
}

// TestHistoryIsBounded checks that the kind that was not seen for longest is dropped,
// among equals the first by name.
func TestHistoryIsBounded(t *testing.T) {
	w := newWorld(t, learning(), 1)
	for i := range predict.MaxKinds {
		ran(w, kind(fmt.Sprintf("k%04d", i), ""), time.Duration(i/2%2), units.GiB) // two each at the same moment
	}
	if len(w.s.predictor.Save().History) != predict.MaxKinds {
		t.Fatalf("%d kinds are known", len(w.s.predictor.Save().History))
	}
	known := func(name string, want bool) {
		t.Helper()
		if got := w.s.kindHistory(name) != nil; got != want {
			t.Errorf("%s known: %v", name, got)
		}
	}
	ran(w, kind("k0000", ""), time.Second, units.GiB) // seen again
	ran(w, kind("new", ""), time.Second, units.GiB)
	known("k0000", true)
	known("k0001", false)
	known("k0002", true)
	known("new", true)
	if len(w.s.predictor.Save().History) != predict.MaxKinds {
		t.Errorf("%d kinds are known", len(w.s.predictor.Save().History))
	}
}

// TestHistoryInSnapshot checks that the history survives a restart, and that an inconsistent
// one is rejected.
func TestHistoryInSnapshot(t *testing.T) {
	opt := learning()
	opt.Order = model.OrderSJF
	w := newWorld(t, opt, 1)
	taught(w, map[string]time.Duration{"a1": time.Hour, "a2": 1234567891, "b": time.Minute})
	b, err := json.Marshal(w.s)
	if err != nil {
		t.Fatal(err)
	}
	restored := &State{}
	if err := json.Unmarshal(b, restored); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(restored.predictor.Save().History, w.s.predictor.Save().History) || len(restored.predictor.Save().History) != 3 {
		t.Errorf("the history came back as %+v", restored.predictor.Save().History)
	}
	for _, row := range []struct{ old, new string }{
		{`"kind":"a1"`, `"kind":"z"`}, {`"kind":"a2"`, `"kind":"a1"`}, {`"history":[{`, `"history":[null,{`},
		{`"runs":1`, `"runs":-1`}, {`"runs":1`, `"runs":1000000000000`}, {`"peak":1073741824`, `"peak":-1`}, {`"alone":3600000000000`, `"alone":-3600000000000`},
	} {
		bad := strings.Replace(string(b), row.old, row.new, 1)
		if bad == string(b) {
			t.Fatalf("%s is not in the snapshot:\n%s", row.old, b)
		}
		if err := new(State).UnmarshalJSON([]byte(bad)); err == nil || !strings.Contains(err.Error(), "history") {
			t.Errorf("%s instead of %s: got %v", row.new, row.old, err)
		}
	}
}

// TestProgress checks that the progress of a task is kept over every change of its
// neighbours, at the speed of its slowest GPU.
func TestProgress(t *testing.T) {
	beside := interference.Speeds([]interference.Load{small, vgg128})
	w := newWorld(t, plain(), 2)
	submit := func(n int, l interference.Load) model.TaskID {
		id := w.submitOnly(gpus(n))
		w.step(model.Estimated{At: w.now, Task: id, Estimate: model.Estimate{Memory: units.GiB}, Expected: model.Expected{Loads: []interference.Load{l}}})
		return id
	}
	wide := submit(2, small)
	w.wait(time.Minute) // not started, so no work is done
	w.started(wide)
	w.wait(100 * time.Second)
	b := submit(1, vgg128) // counts from its launch on
	w.started(b)
	w.wait(50 * time.Second)
	w.exit(b, model.ExitOK)
	w.wait(30 * time.Second)
	w.exit(wide, model.ExitOK)
	for id, want := range map[model.TaskID]float64{wide: 130 + 50*beside[0], b: 50 * beside[1]} {
		if got := w.finished[id].Done; got < want-1e-6 || got > want+1e-6 {
			t.Errorf("task %d has done %v s, want %v", id, got, want)
		}
	}
	// A task that leaves its GPU idle neither slows others down nor is slowed down.
	idle := submit(1, nothing)
	w.started(idle)
	b = submit(1, vgg128)
	w.wantOn(b, 1)
	w.exit(idle, model.ExitEvicted)
	w.wantOn(idle, 0)
	w.started(idle)
	c := submit(1, vgg128)
	w.wantOn(c, 0)
	w.started(c)
	w.wait(10 * time.Second)
	w.exit(c, model.ExitOK)
	w.exit(idle, model.ExitOK)
	w.exit(b, model.ExitOK)
	for _, id := range []model.TaskID{c, idle} {
		if got := w.finished[id].Done; got != 10 {
			t.Errorf("task %d has done %v s, want 10", id, got)
		}
	}
	// A new attempt begins again.
	again := submit(1, small)
	w.started(again)
	w.wait(time.Hour)
	w.exit(again, model.ExitEvicted)
	w.started(again)
	w.wait(time.Second)
	w.exit(again, model.ExitOK)
	if got := w.finished[again].Done; got != 1 {
		t.Errorf("the second attempt has done %v s", got)
	}
}
