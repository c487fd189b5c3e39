package mapper

import (
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/interference"
	"carma/mapper/model"
	"carma/mapper/predict"
)

// seen sends a sample of the activity of GPU-0.
func (w *world) seen(l interference.Load, foreign units.Bytes) {
	w.t.Helper()
	w.sample(model.GPUSample{ID: "GPU-0", OtherProcesses: foreign, SMACT: l.SMACT, SMOCC: l.SMOCC, DRAMA: l.DRAMA})
}

// loadOf returns the load of a task on GPU-0 in the ledger.
func (w *world) loadOf(id model.TaskID) interference.Load { return w.s.GPU("GPU-0").Resident(id).Load }

// TestStrangerIsSeen checks that no task joins an unknown one until samples have shown its
// activity, and that its observed load is used then.
func TestStrangerIsSeen(t *testing.T) {
	opt := predicting()
	opt.SlowdownCap = 1.3
	w := newWorld(t, opt, 1)
	a := w.expecting(model.Expected{}, nil)
	b := w.does(resnet, "")
	w.wantWhy(b, "GPU 0 unseen task="+a.String())
	w.seen(small, 0)
	w.wait(model.SettleTime - 1)
	w.wantOn(b)
	if w.loadOf(a) != model.UnknownLoad {
		t.Errorf("it is taken for %+v before it was seen", w.loadOf(a))
	}
	w.wait(1)
	w.wantOn(b, 0)

	// No further task joins a task whose samples show that it is heavy.
	w = newWorld(t, predicting(), 1)
	w.expecting(model.Expected{}, nil)
	w.seen(vgg128, 0)
	w.wait(model.SettleTime)
	w.look()
	w.wantWhy(w.does(small, ""), "GPU 0 slowdown task=0 ")
}

// TestAcquaint checks that activity beyond the expected activity of the others is attributed to
// the unknown task, with a small minimum.
func TestAcquaint(t *testing.T) {
	known := interference.Load{SMACT: 0.2, SMOCC: 0.1, DRAMA: 0.1}
	for _, row := range []struct {
		name    string
		unknown int
		others  loads
		foreign units.Bytes
		sample  interference.Load
		want    float64 // SMACT of the first
	}{
		{"alone", 1, nil, 0, interference.Load{SMACT: 0.4}, 0.4},
		{"it reads data", 1, nil, 0, interference.Load{}, predict.UnknownLeast},
		{"beside a known one that is idle", 1, loads{nothing}, 0, interference.Load{SMACT: 0.4}, 0.4},
		{"all is the known one's", 1, loads{known}, 0, interference.Load{SMACT: 0.2}, predict.UnknownLeast},
		{"a known one, busier than expected", 0, loads{known}, 0, interference.Load{SMACT: 0.4}, 0.4},
		{"a known one, a little busier", 0, loads{known}, 0, interference.Load{SMACT: 0.24}, 0.2},
		{"a known one, not so busy", 0, loads{known}, 0, interference.Load{SMACT: 0.1}, 0.2},
		{"a known one beside others' processes", 0, loads{known}, units.GiB, interference.Load{SMACT: 0.4}, 0.2},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t, uncapped(), 1)
			var first model.TaskID
			for range row.unknown {
				first = w.expecting(model.Expected{}, nil)
			}
			for _, l := range row.others {
				if id := w.put(0, l, ""); first == 0 {
					first = id
				}
			}
			w.seen(row.sample, row.foreign)
			w.wait(model.SettleTime)
			w.look()
			if got := w.loadOf(first).SMACT; got < row.want-1e-9 || got > row.want+1e-9 {
				t.Errorf("it is taken for SMACT %v, want %v", got, row.want)
			}
		})
	}
}

// TestActivityOfOthers checks that SM activity that carma's tasks do not explain slows a new
// task down like another task, on a GPU that is not idle.
func TestActivityOfOthers(t *testing.T) {
	for _, row := range []struct {
		name  string
		smact float64
		wait  time.Duration
		fits  bool
	}{
		{"much", 0.95, model.SettleTime, false},
		{"not seen for long enough", 0.95, model.SettleTime - 1, true},
		{"little", 0.15, model.SettleTime, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t, predicting(), 1)
			w.wantOn(w.does(small, ""), 0)
			w.seen(interference.Load{SMACT: row.smact, DRAMA: 0.4}, units.GiB)
			w.wait(row.wait)
			id := w.does(small, "")
			if got := w.on(id) != nil; got != row.fits {
				t.Errorf("it is placed: %v", got)
			}
		})
	}
	// An idle GPU with such activity is used, but only after an idle GPU without activity.
	w := newWorld(t, predicting(), 2)
	w.wait(model.SettleTime)
	w.seen(interference.Load{SMACT: 0.95, DRAMA: 0.4}, units.GiB)
	w.wantOn(w.does(vgg128, ""), 1)
	w.wantOn(w.does(vgg128, ""), 0)
}

// TestEarlierRunIsExpected checks that the observed load of a run that was alone for long
// enough is expected of the next run of its kind, in place of the declared one.
func TestEarlierRunIsExpected(t *testing.T) {
	for _, row := range []struct {
		name string
		run  time.Duration
		want string
	}{{"long enough", model.SettleTime + predict.AloneLeast*time.Second, "history"}, {"too short", model.SettleTime + predict.AloneLeast*time.Second - 1, ""}} {
		t.Run(row.name, func(t *testing.T) {
			opt := predicting()
			opt.Learn = true
			w := newWorld(t, opt, 1)
			a := w.does(small, "k")
			w.seen(interference.Load{SMACT: 0.15, SMOCC: 0.1, DRAMA: 0.05}, 0)
			w.wait(row.run)
			w.exit(a, model.ExitOK)
			e := w.task(w.does(vgg128, "k")).Expected
			if e.Source != row.want {
				t.Errorf("expected is %+v", e)
			}
			if l := e.Loads[0]; row.want != "" && (l.SMACT < 0.149 || l.SMACT > 0.151 || l.Step != small.Step) {
				t.Errorf("expected is %+v", l)
			}
		})
	}
}

// TestExpectedRunTime checks the order of sources: runs of the kind, the typical time of
// the model, its family, all runs, and half an hour.
func TestExpectedRunTime(t *testing.T) {
	w := newWorld(t, plain(), 1)
	of := func(name, family string, typically time.Duration) (time.Duration, predict.Basis) {
		task := &model.Task{Request: model.Request{Kind: name, Family: family}, Expected: model.Expected{RunTime: typically}}
		w.s.predictor.Forget(task)
		return w.s.predictor.RunTime(task)
	}
	check := func(name, family string, typically, want time.Duration, on predict.Basis) {
		t.Helper()
		got, basis := of(name, family, typically)
		if name != "a1" && typically == 0 && want != predict.UnknownRun { // mean run times are rounded to steps
			if off := got - want; max(off, -off) <= want/predict.RunTimeStep {
				got = want
			}
		}
		if got != want || basis != on {
			t.Errorf("%q of %q: %s (%d), want %s (%d)", name, family, got, basis, want, on)
		}
	}
	check("", "", 0, predict.UnknownRun, predict.Guessed)
	taught(w, map[string]time.Duration{"a1": time.Hour, "a2": 3 * time.Hour, "b1": 5 * time.Hour})
	check("a1", "a", 7*time.Hour, time.Hour, predict.Known)
	check("a3", "a", 7*time.Hour, 7*time.Hour, predict.Typical)
	check("a3", "a", 0, 2*time.Hour, predict.Typical)
	check("c", "c", 0, 3*time.Hour, predict.Guessed)
	check("", "", 0, 3*time.Hour, predict.Guessed)
}
