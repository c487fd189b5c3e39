package mapper

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"carma/mapper/interference"
	"carma/mapper/model"
	"carma/mapper/predict"
)

// stranger places a task with unknown load and run time on GPU-0.
func (w *world) stranger(name string) model.TaskID {
	w.t.Helper()
	opt := w.s.Options()
	other := opt
	other.Policy = "magm"
	w.step(model.Configured{At: w.now, Options: other})
	w.openOnly(0)
	id := w.expecting(model.Expected{}, kind(name, ""))
	w.wantOn(id, 0)
	w.openOnly(-1)
	w.step(model.Configured{At: w.now, Options: opt})
	return id
}

// shows sends a sample of GPU-0 with tasks of these loads, and returns their speeds.
func (w *world) shows(all ...interference.Load) []float64 {
	w.t.Helper()
	speeds := interference.Speeds(all)
	var sum interference.Load
	for i, l := range all {
		sum.SMACT += l.SMACT * speeds[i]
		sum.SMOCC += l.SMOCC * speeds[i]
		sum.DRAMA += l.DRAMA * speeds[i]
	}
	w.seen(sum, 0)
	return speeds
}

var (
	faint = predict.TypicalLoads[predict.LightTask]
	mid   = predict.TypicalLoads[predict.MediumTask]
	heavy = predict.TypicalLoads[predict.HeavyTask]
)

// TestUnmix checks that the activity of a new task is found from the samples of the GPU,
// alone and beside others, and from the slowdown that the others report.
func TestUnmix(t *testing.T) {
	for _, row := range []struct {
		name    string
		others  loads
		is      interference.Load
		measure bool
		within  float64
	}{
		{"light, alone", nil, faint, false, 0.011},
		{"medium, alone", nil, mid, false, 0.011},
		{"heavy, alone", nil, heavy, false, 0.011},
		{"light beside light", loads{faint}, faint, false, 0.02},
		{"light beside medium", loads{mid}, faint, false, 0.02},
		{"light beside heavy", loads{heavy}, faint, false, 0.05},
		{"medium beside light", loads{faint}, mid, false, 0.02},
		{"medium beside medium", loads{mid}, mid, false, 0.1}, // the GPU is nearly full even without it
		{"medium beside heavy", loads{heavy}, mid, true, 0.05},
		{"heavy beside light", loads{faint}, heavy, true, 0.03},
		{"heavy beside medium", loads{mid}, heavy, true, 0.03},
		{"medium beside two light ones", loads{faint, faint}, mid, true, 0.05},
		{"light beside light and medium", loads{faint, mid}, faint, true, 0.05},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t, uncapped(), 1)
			var others []model.TaskID
			for _, l := range row.others {
				id := w.put(0, l, "")
				others = append(others, id)
			}
			all := append(loads{}, row.others...)
			before := interference.Speeds(all)
			w.shows(all...)
			w.wait(2 * time.Minute)
			if row.measure {
				for i, id := range others {
					w.tells(id, 100*before[i])
				}
			}
			a := w.stranger("")
			speeds := w.shows(append(all, row.is)...)
			w.wait(model.SettleTime + time.Minute)
			if row.measure {
				for i, id := range others {
					w.tells(id, 100*speeds[i])
				}
			}
			w.look()
			got := w.loadOf(a)
			if math.Abs(got.SMACT-row.is.SMACT) > row.within {
				t.Errorf("it is taken for SMACT %.3f, and is %.3f", got.SMACT, row.is.SMACT)
			}
			if e := w.task(a).Expected; len(e.Loads) != 1 || e.Source != model.SourceSeen || e.Loads[0] != got {
				t.Errorf("expected of it is %+v", e)
			}
			if w.s.predictor.TaskOfUnknownLoad(w.s.GPU("GPU-0")) != 0 {
				t.Error("it counts as unseen")
			}
		})
	}
}

// TestUnmixBySpeed checks that the speed of a light neighbour distinguishes a busy task from a
// slightly less busy one that has nearly the same samples.
func TestUnmixBySpeed(t *testing.T) {
	busy, less := interference.Load{SMACT: 0.83, DRAMA: 0.35, SMOCC: 0.4}, interference.Load{SMACT: 0.71, DRAMA: 0.3, SMOCC: 0.35}
	found := func(slowed float64) interference.Load {
		w := newWorld(t, uncapped(), 1)
		b := w.put(0, faint, "")
		w.shows(faint)
		w.wait(2 * time.Minute)
		w.paces(model.Throughput{Task: b, Rate: 100, Error: 0.03})
		a := w.stranger("")
		w.seen(interference.Load{SMACT: 0.855, DRAMA: 0.33, SMOCC: 0.38}, 0) // between the two
		w.wait(2 * time.Minute)
		w.paces(model.Throughput{Task: b, Rate: 100 * slowed, Error: 0.03})
		w.look()
		return w.loadOf(a)
	}
	for _, is := range []interference.Load{busy, less} {
		if got := found(interference.Speeds(loads{faint, is})[0]); math.Abs(got.SMACT-is.SMACT) > 0.045 {
			t.Errorf("one of SMACT %.2f is taken for %.2f", is.SMACT, got.SMACT)
		}
	}
}

// TestUnmixDoubt checks that the estimated activity of several new tasks that were placed
// together has a larger standard deviation than the activity of a single one.
func TestUnmixDoubt(t *testing.T) {
	w := newWorld(t, uncapped(), 1)
	a := w.stranger("")
	w.shows(faint)
	w.wait(model.SettleTime)
	w.look()
	one := w.task(a).Doubt

	w = newWorld(t, uncapped(), 1)
	a = w.stranger("")
	b := w.stranger("")
	w.shows(faint, faint)
	w.wait(model.SettleTime)
	w.look()
	if d := w.task(a).Doubt; d < predict.MixedDoubt || d <= one || one < predict.SeenDoubt || w.task(b).Doubt != d {
		t.Errorf("the doubt is %v for one, %v and %v for two", one, d, w.task(b).Doubt)
	}
	if x, y := w.loadOf(a), w.loadOf(b); x != y || math.Abs(x.SMACT-faint.SMACT) > 0.02 {
		t.Errorf("they are taken for %.2f and %.2f, and are %.2f each", x.SMACT, y.SMACT, faint.SMACT)
	}
}

// TestToldIsCorrected checks that samples correct a declared activity if they clearly differ
// from it. Lower samples do not count, because the task may be reading data.
func TestToldIsCorrected(t *testing.T) {
	for _, row := range []struct {
		name     string
		told, is interference.Load
		tells    bool
		from, to float64
	}{
		{"as told", mid, mid, true, 0.60, 0.60},
		{"more than told", faint, mid, false, 0.40, 0.61},
		{"less than told", mid, faint, true, 0.16, 0.45},
		{"less than told, and it may be reading data", mid, nothing, false, 0.60, 0.60},
		{"it leaves this GPU idle", nothing, nothing, true, 0, 0},
		{"it leaves this GPU idle, and the other is busier than known", nothing, interference.Load{SMACT: 0.04}, true, 0, 0.04},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t, uncapped(), 1)
			w.put(0, faint, "")
			a := w.put(0, row.told, "")
			w.shows(faint, row.is)
			w.wait(model.SettleTime + time.Minute)
			if row.tells {
				w.tells(a, 3)
			}
			w.look()
			if got := w.loadOf(a).SMACT; got < row.from-1e-9 || got > row.to+1e-9 {
				t.Errorf("it is taken for %.3f, want %.2f to %.2f", got, row.from, row.to)
			}
			if got, want := w.task(a).LoadOn(0).SMACT, w.loadOf(a).SMACT; got != want {
				t.Errorf("expected of its next attempt is %.3f, seen was %.3f", got, want)
			}
		})
	}
}

// TestNotSeenTooSoon checks that a rate that is reported before the samples show the new task
// changes neither an activity nor a correction.
func TestNotSeenTooSoon(t *testing.T) {
	w := newWorld(t, uncapped(), 1)
	b := w.put(0, faint, "b")
	w.shows(faint)
	w.wait(2 * time.Minute)
	w.tells(b, 100)
	a := w.stranger("a")
	w.wait(model.SettleTime - 1)
	w.paces(model.Throughput{Task: b, Rate: 40, Since: w.now.Add(-model.SettleTime / 2)})
	if w.s.predictor.TaskOfUnknownLoad(w.s.GPU("GPU-0")) != a || !w.s.predictor.Save().Pairs.IsZero() {
		t.Errorf("seen: %+v, learned: %+v", w.loadOf(a), w.s.predictor.Save().Pairs.All)
	}
}

// shared returns a sample of GPU-0 with tasks of these loads, with the share of time in
// which the kernels of each task run.
func (w *world) shared(ids []model.TaskID, all ...interference.Load) model.GPUSample {
	speeds := interference.Speeds(all)
	s := model.GPUSample{ID: "GPU-0"}
	for i, l := range all {
		s.SMACT += l.SMACT * speeds[i]
		s.SMOCC += l.SMOCC * speeds[i]
		s.DRAMA += l.DRAMA * speeds[i]
		s.Tasks = append(s.Tasks, model.TaskUse{Task: ids[i], Active: 1 - l.Gap(speeds[i]), Timed: true})
	}
	s.SMACT = min(1, s.SMACT)
	return s
}

// TestUnmixByTimes checks that the activity of a new task beside a busy one is estimated better
// with the share of time of each task's kernels, which is an upper bound on a coarse GPU. The
// output of the task has more weight.
func TestUnmixByTimes(t *testing.T) {
	found := func(times, rate, coarse bool, is interference.Load) float64 {
		w := newWorld(t, uncapped(), 1)
		other := mid
		if coarse {
			other = faint
		}
		b := w.put(0, other, "")
		w.shows(other)
		w.wait(2 * time.Minute)
		a := w.stranger("")
		s := w.shared([]model.TaskID{b, a}, other, is)
		if coarse {
			s.SMACT, s.SMOCC, s.Coarse = 1, 1, true
		}
		if !times {
			s.Tasks = nil
		}
		w.sample(s)
		if rate {
			w.paces(model.Throughput{Task: a, Rate: 100, Error: 0.03})
		}
		w.wait(model.SettleTime + time.Minute)
		w.look()
		return w.loadOf(a).SMACT
	}
	for _, is := range []interference.Load{mid, heavy} {
		with, without := found(true, false, false, is), found(false, false, false, is)
		t.Logf("SMACT %.2f is taken for %.4f, without times for %.4f", is.SMACT, with, without)
		if math.Abs(with-is.SMACT) > math.Abs(without-is.SMACT)-0.01 {
			t.Errorf("it is taken for %.3f, without times for %.3f, and is %.3f", with, without, is.SMACT)
		}
		if got, want := found(true, true, false, is), found(false, true, false, is); got != want {
			t.Errorf("with its own rate it is taken for %.3f, and for %.3f without times", got, want)
		}
	}
	small := interference.Load{SMACT: 0.03, DRAMA: 0.01}
	with, without := found(true, false, true, small), found(false, false, true, small)
	if most := 1 - small.Gap(1); with > most+predict.ScoreError || without < most+5*predict.ScoreError {
		t.Errorf("on a coarse GPU it is taken for %.3f, for %.3f without times; its kernels run for %.3f of the time", with, without, most)
	}
}

// TestTimesComeAndGo checks that the last shares of time become invalid with a sample without
// shares, and that implausible shares are limited to 0 to 1.
func TestTimesComeAndGo(t *testing.T) {
	w := newWorld(t, uncapped(), 1)
	a := w.put(0, faint, "")
	for _, row := range []struct {
		use  model.TaskUse
		want float64
		told bool
	}{
		{model.TaskUse{Task: a, Active: 0.4, Timed: true}, 0.4, true}, {model.TaskUse{Task: a, Timed: true}, 0, true}, {model.TaskUse{Task: a, Active: 7, Timed: true}, 1, true},
		{model.TaskUse{Task: a, Active: math.NaN(), Timed: true}, 0, true}, {model.TaskUse{Task: a, Active: 0.4}, 0, false},
	} {
		w.sample(model.GPUSample{ID: "GPU-0", Tasks: []model.TaskUse{row.use}})
		if r := w.s.GPU("GPU-0").Resident(a); r.Active != row.want || r.Timed != row.told {
			t.Errorf("%+v: %v, told %v", row.use, r.Active, r.Timed)
		}
	}
	if b, err := json.Marshal(model.TaskUse{Task: 1, Used: 2}); err != nil || string(b) != `{"task":1,"used":2}` {
		t.Errorf("without times the journal has %s, %v", b, err)
	}
}
