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

// tells reports the speed of a task, as a mean over the last minute.
func (w *world) tells(id model.TaskID, rate float64) {
	w.t.Helper()
	w.paces(model.Throughput{Task: id, Rate: rate})
}

// paces does the same as tells for any model.Throughput. It sets the attempt and the window.
func (w *world) paces(p model.Throughput) {
	w.t.Helper()
	p.Attempt = w.attempt(p.Task)
	if p.Since == 0 {
		p.Since = w.now.Add(-time.Minute)
	}
	w.step(model.ThroughputReported{At: w.now, Tasks: []model.Throughput{p}})
}

// pairOf returns the correction of one kind beside another, or false if there is none.
func (w *world) pairOf(of, beside string) (predict.Correction, bool) {
	for _, c := range w.s.predictor.Save().Pairs.All {
		if c.Of == of && c.Beside == beside {
			return c, true
		}
	}
	return predict.Correction{}, false
}

// couple places a task of kind a alone on GPU 0, measures it, and then places a task of kind b
// beside it. It returns the predicted speed of a.
func couple(w *world, a, b interference.Load) (first model.TaskID, predicted float64) {
	w.t.Helper()
	first = w.put(0, a, "a")
	w.wait(2 * time.Minute)
	w.paces(model.Throughput{Task: first, Rate: 100, Error: 0.05})
	w.put(0, b, "b")
	w.wait(2 * time.Minute)
	g := w.s.GPU("GPU-0")
	speeds := w.s.predictor.SharingMode(g).Speeds(nil, []predict.Demand{w.s.predictor.Demand(a, &model.Task{Request: model.Request{Kind: "a"}}), w.s.predictor.Demand(b, &model.Task{Request: model.Request{Kind: "b"}})})
	w.seen(interference.Load{SMACT: a.SMACT*speeds[0] + b.SMACT*speeds[1], DRAMA: 0.2, SMOCC: 0.2}, 0)
	return first, w.task(first).Speed
}

// TestCorrectionShrinks checks that one noisy measurement changes a prediction a little,
// that ten in agreement change it much, and that the variance falls with each.
func TestCorrectionShrinks(t *testing.T) {
	for _, row := range []struct {
		name     string
		times    int
		error    float64
		from, to float64 // bounds of the correction, as a share of the measured value
	}{
		{"one, noisy", 1, 0.3, 0.01, 0.1},
		{"one, exact", 1, 0.02, 0.3, 0.6},
		{"ten, noisy", 10, 0.1, 0.5, 0.9},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t, uncapped(), 1)
			a, predicted := couple(w, resnet, resnet)
			const off = 0.85
			last := predict.FirstError * predict.FirstError
			for range row.times {
				w.wait(time.Minute)
				w.paces(model.Throughput{Task: a, Rate: 100 * predicted * off, Error: row.error})
				c, ok := w.pairOf("a", "b")
				if !ok || !(c.Var < last) {
					t.Fatalf("the correction is %+v, the variance was %v", c, last)
				}
				last = c.Var
			}
			c, _ := w.pairOf("a", "b")
			if share := c.Mean / math.Log(off); share < row.from || share > row.to {
				t.Errorf("corrected by %.2f of what was measured, want %.2f to %.2f", share, row.from, row.to)
			}
			if want := predicted * math.Exp(c.Mean); math.Abs(w.task(a).Speed/want-1) > predict.CorrectionStep/1.9 {
				t.Errorf("predicted at %.3f now, the correction says %.3f", w.task(a).Speed, want)
			}
			if _, ok := w.pairOf("b", "a"); ok {
				t.Error("what a beside b does was learned of b beside a")
			}
		})
	}
}

// TestCorrectionIsOfKinds checks that another pair of the same kinds is predicted with the
// correction, also on another GPU, and that nothing is learned from tasks without a kind.
func TestCorrectionIsOfKinds(t *testing.T) {
	w := newWorld(t, uncapped(), 2)
	w.put(1, resnet, "a")
	w.put(1, resnet, "b")
	a, predicted := couple(w, resnet, resnet)
	for range 10 {
		w.wait(time.Minute)
		w.paces(model.Throughput{Task: a, Rate: 80 * predicted, Error: 0.05})
	}
	c, _ := w.pairOf("a", "b")
	if c.Mean > -0.1 {
		t.Fatalf("nothing was learned: %+v", c)
	}
	want := predicted * math.Exp(math.Round(c.Mean/predict.CorrectionStep)*predict.CorrectionStep)
	if got := w.s.GPU("GPU-1").Residents[0].Speed; math.Abs(got/want-1) > 0.001 {
		t.Errorf("on the other GPU it is predicted at %.3f, want %.3f", got, want)
	}

	w = newWorld(t, uncapped(), 1)
	first := w.put(0, resnet, "")
	w.wait(2 * time.Minute)
	w.tells(first, 100)
	w.put(0, resnet, "b")
	w.wait(2 * time.Minute)
	w.tells(first, 30)
	if !w.s.predictor.Save().Pairs.IsZero() {
		t.Errorf("learned %+v of a task without a kind", w.s.predictor.Save().Pairs.All)
	}
}

// TestCorrectionIsNoNote checks that learned corrections apply to other GPUs at once: a copy,
// which has no cache, scores a waiting task in the same way. The cap for other kinds changes
// too.
func TestCorrectionIsNoNote(t *testing.T) {
	for _, row := range []struct{ there, waits string }{{"b", "a"}, {"c", "d"}} {
		opt := predicting()
		opt.SlowdownCap = 1.1
		w := newWorld(t, opt, 2)
		w.put(1, resnet, row.there)
		a, predicted := couple(w, resnet, resnet)
		waits := w.does(resnet, row.waits)
		first := w.whyNot(waits, 1)
		for i := range 4 {
			w.wait(time.Minute)
			w.paces(model.Throughput{Task: a, Rate: 70 * predicted, Error: 0.05})
			got, want := w.whyNot(waits, 1), (&world{t: t, s: w.s.Clone()}).whyNot(waits, 1)
			if got != want {
				t.Errorf("after %d measurements GPU 1 is turned down for %+v, by a copy for %+v", i+1, got, want)
			}
		}
		if last := w.whyNot(waits, 1); last == first {
			t.Errorf("four measurements changed nothing: %+v", last)
		}
	}
}

// TestCorrectionsAreBounded checks that implausible rates cannot make a prediction useless, or
// a snapshot unreadable.
func TestCorrectionsAreBounded(t *testing.T) {
	for _, rate := range []float64{math.SmallestNonzeroFloat64, 2 * predict.LeastRate, predict.MostRate, math.MaxFloat64} {
		w := newWorld(t, uncapped(), 1)
		a, _ := couple(w, resnet, resnet)
		for range 20 {
			w.wait(time.Minute)
			w.tells(a, rate)
		}
		c, _ := w.pairOf("a", "b")
		if !(math.Abs(c.Mean) <= predict.MostCorrection && c.Var >= 0 && c.Var <= 1) {
			t.Errorf("rate %g: the correction is %+v", rate, c)
		}
		if most := w.s.predictor.PredictedCap(); !(most >= 1 && most <= w.s.Options().SlowdownCap) {
			t.Errorf("rate %g: the largest slowdown allowed is %v", rate, most)
		}
		if p := w.s.predictor.Save().Pairs; p.Off > p.Misses*predict.MostCorrection*predict.MostCorrection {
			t.Errorf("rate %g: predictions were off by %v in %v", rate, p.Off, p.Misses)
		}
		if speed := w.task(a).Speed; !(speed >= predict.SlowestSpeed && speed <= 1) {
			t.Errorf("rate %g: it is predicted at %v", rate, speed)
		}
		w.exit(a, model.ExitOK)
		b, err := json.Marshal(w.s)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, new(State)); err != nil {
			t.Errorf("rate %g: %v", rate, err)
		}
	}
}

// TestPredictedCap checks that unproven predictions leave a margin for the likely worst
// case, and that correct predictions raise the cap while wrong ones lower it.
func TestPredictedCap(t *testing.T) {
	s := New(predicting())
	fresh := s.predictor.PredictedCap()
	if want := 1 + (predict.DefaultSlowdownCap-1)*math.Exp(-predict.LikelyWorst*predict.FirstError); math.Abs(fresh-want) > predict.ProvenStep {
		t.Errorf("with nothing measured predictions may be up to %.3f, want %.3f", fresh, want)
	}
	measured := func(off float64) {
		snap := s.predictor.Save()
		snap.Pairs.Misses, snap.Pairs.Off = 200, off
		if err := s.predictor.Restore(snap); err != nil {
			t.Fatal(err)
		}
	}
	measured(0)
	proven := s.predictor.PredictedCap()
	if !(proven > fresh && proven < predict.DefaultSlowdownCap) {
		t.Errorf("after 200 predictions that came true %.3f, before %.3f", proven, fresh)
	}
	measured(200 * 0.3 * 0.3)
	if wrong := s.predictor.PredictedCap(); !(wrong > 1 && wrong < fresh) {
		t.Errorf("after 200 predictions that were 30 %% off %.3f, before %.3f", wrong, fresh)
	}
}
