package mapper

import (
	"math"
	"testing"
	"time"

	"carma/mapper/interference"
	"carma/mapper/model"
	"carma/mapper/place"
	"carma/mapper/predict"
)

// fullGPU places an unknown task beside a known medium task, so that the GPU is full. It
// returns both, and the world.
func fullGPU(t *testing.T, is interference.Load) (w *world, other, a model.TaskID) {
	w = newWorld(t, uncapped(), 1)
	other = w.put(0, mid, "")
	w.shows(mid)
	w.wait(2 * time.Minute)
	a = w.stranger("")
	w.seen(interference.Load{SMACT: 1, SMOCC: 0.5, DRAMA: 0.45}, 0)
	w.wait(model.SettleTime + time.Minute)
	w.look()
	return w, other, a
}

// TestFullGPU checks that the samples of a full GPU do not distinguish a medium unknown task
// from a heavy one, so that the estimate lies between the two and is doubtful.
func TestFullGPU(t *testing.T) {
	w, _, a := fullGPU(t, heavy)
	if got := w.loadOf(a).SMACT; got < mid.SMACT+0.02 || got > heavy.SMACT-0.02 {
		t.Errorf("it is taken for %.3f", got)
	}
	if doubt := w.task(a).Doubt; doubt < predict.Doubtful || doubt > 0.2 {
		t.Errorf("the doubt is %.3f", doubt)
	}
}

// TestUnmixAgain checks that a doubtful activity is estimated again as soon as samples are more
// exact, and may rise or fall.
func TestUnmixAgain(t *testing.T) {
	for _, is := range []interference.Load{mid, heavy} {
		w, other, a := fullGPU(t, is)
		w.exit(other, model.ExitOK)
		w.shows(is)
		w.wait(model.SettleTime + time.Minute)
		w.look()
		if got := w.loadOf(a).SMACT; math.Abs(got-is.SMACT) > 0.03 {
			t.Errorf("it is taken for %.3f, and is %.3f", got, is.SMACT)
		}
		if doubt := w.task(a).Doubt; doubt > predict.Doubtful {
			t.Errorf("the doubt is %.3f", doubt)
		}
	}
}

// TestNothingCountsTwice checks that using the same samples again does not reduce a standard
// deviation.
func TestNothingCountsTwice(t *testing.T) {
	w, _, a := fullGPU(t, heavy)
	load, doubt := w.loadOf(a), w.task(a).Doubt
	for range 5 {
		w.s.predictor.AttributeLoad(w.s.GPU("GPU-0"))
	}
	if got := w.loadOf(a); math.Abs(got.SMACT-load.SMACT) > 0.03 || w.task(a).Doubt < doubt-0.02 {
		t.Errorf("at first %.3f, in doubt by %.3f; then %.3f by %.3f", load.SMACT, doubt, got.SMACT, w.task(a).Doubt)
	}
}

// TestToldStep checks that the step time reported by the output becomes part of the load
// of an unknown task, here and in its next attempt. Other units have no step time.
func TestToldStep(t *testing.T) {
	for _, row := range []struct {
		steps bool
		want  float64
	}{{true, 0.25}, {false, 0}} {
		w := newWorld(t, uncapped(), 1)
		a := w.stranger("")
		w.shows(heavy)
		w.wait(model.SettleTime + time.Minute)
		w.look()
		w.paces(model.Throughput{Task: a, Rate: 4, Error: 0.03, Steps: row.steps})
		if got, next := w.loadOf(a).Step, w.task(a).LoadOn(0).Step; math.Abs(got-row.want) > 1e-9 || next != got {
			t.Errorf("steps: %v: %.3f s, in its next attempt %.3f s, want %.3f s", row.steps, got, next, row.want)
		}
	}
}

// TestUntold checks that an unknown task does not join another until the other one's output has
// reported its speed, or the time for that has passed. A known task may join.
func TestUntold(t *testing.T) {
	for _, row := range []struct {
		name   string
		after  time.Duration // time after the settling time
		tells  bool
		known  bool
		joined bool
	}{
		{"not told yet", 0, false, false, false},
		{"told", 0, true, false, true},
		{"known", 0, false, true, true},
		{"it had the time", place.TellWithin, false, false, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t, predicting(), 1)
			a := w.stranger("")
			w.shows(faint)
			w.wait(model.SettleTime + time.Second)
			w.look()
			w.wait(row.after)
			if row.tells {
				w.tells(a, 100)
			}
			e := model.Expected{}
			if row.known {
				e = model.Expected{Loads: loads{faint}}
			}
			b := w.expecting(e, kind("b", ""))
			if row.joined {
				w.wantOn(b, 0)
				return
			}
			w.wantWhy(b, "GPU 0 unseen task="+a.String())
			w.wait(place.TellWithin)
			w.look() // the first was placed by another policy, which sets no timer
			w.wantOn(b, 0)
		})
	}
}
