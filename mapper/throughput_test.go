package mapper

import (
	"math"
	"testing"
	"time"

	"carma/mapper/model"
	"carma/mapper/predict"
)

// TestPaced checks the measured speed of a task alone, and comparisons with it.
func TestPaced(t *testing.T) {
	w := newWorld(t, uncapped(), 1)
	a := w.put(0, resnet, "a")
	w.wait(2 * time.Minute)
	w.tells(a, 100)
	if p := w.task(a).Pace; p.Alone != 100 || p.Rate != 100 || p.At != w.now {
		t.Fatalf("alone it goes as %+v", p)
	}
	w.wait(time.Minute)
	w.tells(a, 110)
	if p := w.task(a).Pace; p.Alone != 110 {
		t.Fatalf("alone it goes as %+v", p)
	}
	w.put(0, resnet, "b")
	w.shows(resnet, resnet)
	w.wait(30 * time.Second)
	w.tells(a, 70) // partly measured while it was alone
	if !w.s.predictor.Save().Pairs.IsZero() {
		t.Errorf("%+v was learned while the neighbours changed", w.s.predictor.Save().Pairs.All)
	}
	if p := w.task(a).Pace; p.Alone != 110 || p.Rate != 70 {
		t.Errorf("it goes as %+v", p)
	}
	w.wait(2 * time.Minute)
	w.tells(a, 70)
	if c, ok := w.pairOf("a", "b"); !ok || c.Mean >= 0 {
		t.Errorf("a slowdown to 0.64 of the speed alone has taught %+v", c)
	}
}

// TestPacedBesideOthers checks that a task that never was alone is at first assumed to have its
// predicted speed; a declared step time gives a better result.
func TestPacedBesideOthers(t *testing.T) {
	for _, steps := range []bool{false, true} {
		w := newWorld(t, uncapped(), 1)
		w.put(0, resnet, "b")
		a := w.put(0, resnet, "a")
		w.shows(resnet, resnet)
		w.wait(3 * time.Minute)
		speed := w.task(a).Speed
		w.paces(model.Throughput{Task: a, Rate: 5, Steps: steps, Error: 0.02})
		p := w.task(a).Pace
		want := 5 / speed
		if steps {
			want = 1 / resnet.Step
		}
		if math.Abs(p.Alone/want-1) > 1e-9 || p.Error <= 0.02 {
			t.Errorf("steps %v: alone it goes at %v (%v), want %v", steps, p.Alone, p.Error, want)
		}
		if _, ok := w.pairOf("a", "b"); ok != steps {
			t.Errorf("steps %v: corrected: %v", steps, ok)
		}
	}
}

// TestPacedIgnores checks that rates of other attempts, of tasks that do not run, and
// implausible rates are ignored.
func TestPacedIgnores(t *testing.T) {
	w := newWorld(t, uncapped(), 1)
	a := w.put(0, resnet, "a")
	waits := w.submit(80, func(r *model.Request) { r.Delay = time.Hour })
	w.wait(2 * time.Minute)
	since := w.now.Add(-time.Minute)
	for _, p := range []model.Throughput{
		{Task: a, Attempt: 2, Rate: 1}, {Task: a, Attempt: 0, Rate: 1}, {Task: 77, Attempt: 1, Rate: 1}, {Task: waits, Attempt: 1, Rate: 1},
		{Task: a, Attempt: 1, Rate: math.NaN()}, {Task: a, Attempt: 1, Rate: math.Inf(1)}, {Task: a, Attempt: 1, Rate: -1}, {Task: a, Attempt: 1},
		{Task: a, Attempt: 1, Rate: math.SmallestNonzeroFloat64}, {Task: a, Attempt: 1, Rate: math.MaxFloat64},
	} {
		p.Since = since
		w.step(model.ThroughputReported{At: w.now, Tasks: []model.Throughput{p}})
		if got := w.task(a).Pace; got != (model.ThroughputState{}) {
			t.Errorf("%+v was believed: %+v", p, got)
		}
	}
}

// TestShareTellsRunTime checks that the share of the work done gives the time alone of
// the attempt, which then counts as known.
func TestShareTellsRunTime(t *testing.T) {
	for _, row := range []struct {
		share float64
		want  time.Duration // run time, or 0 if it stays unknown
	}{{0.25, 8 * time.Minute}, {predict.LeastDone, 100 * time.Minute}, {predict.LeastDone / 2, 0}, {0, 0}, {math.NaN(), 0}, {-1, 0}, {7, 2 * time.Minute}} {
		w := newWorld(t, uncapped(), 1)
		a := w.put(0, resnet, "a")
		w.wait(2 * time.Minute)
		w.paces(model.Throughput{Task: a, Rate: 100, Share: row.share})
		run, basis := w.s.predictor.RunTime(w.task(a))
		if row.want == 0 {
			if basis == predict.Known {
				t.Errorf("a share of %v tells %s", row.share, run)
			}
			continue
		}
		if off := run - row.want; basis != predict.Known || max(off, -off) > time.Second {
			t.Errorf("a share of %v after 2 min tells %s (%d), want %s", row.share, run, basis, row.want)
		}
	}
	w := newWorld(t, uncapped(), 1) // another attempt starts without a rate
	a := w.put(0, resnet, "a")
	w.wait(2 * time.Minute)
	w.paces(model.Throughput{Task: a, Rate: 100, Share: 0.5})
	w.exit(a, model.ExitEvicted)
	w.wantOn(a, 0)
	if p := w.task(a).Pace; p != (model.ThroughputState{}) {
		t.Errorf("the next attempt goes as %+v", p)
	}
}
