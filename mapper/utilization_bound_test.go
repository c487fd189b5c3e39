package mapper

import (
	"math"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/interference"
	"carma/mapper/model"
	"carma/mapper/predict"

	"pgregory.net/rapid"
)

// coarsely sends a coarse sample of GPU-0: a kernel runs for this share of the time.
func (w *world) coarsely(share float64) {
	w.t.Helper()
	w.sample(model.GPUSample{ID: "GPU-0", SMACT: share, SMOCC: share, DRAMA: share, Coarse: true})
}

// TestCoarseIsABound checks that coarse samples bound the activity of an unknown task.
// The result is in doubt, and does not become the task's expected load.
func TestCoarseIsABound(t *testing.T) {
	for _, row := range []struct {
		name        string
		share       float64
		known       loads
		least, most float64
	}{
		{"idle", 0, nil, predict.UnknownLeast, predict.UnknownLeast},
		{"small kernels", 0.55, nil, 0.15, 0.25},
		{"a kernel runs all the time", 1, nil, 0.6, 0.9},
		{"little more than the known one's", 0.6, loads{small}, predict.UnknownLeast, 0.2},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t, uncapped(), 1)
			for _, l := range row.known {
				w.does(l, "")
			}
			id := w.expecting(model.Expected{}, nil)
			w.coarsely(row.share)
			w.wait(model.SettleTime)
			w.look()
			r := w.s.GPU("GPU-0").Resident(id)
			if r.Unseen || !r.Bound || r.Load.SMACT < row.least-1e-9 || r.Load.SMACT > row.most || r.Doubt < model.CoarseDoubt {
				t.Errorf("it is taken for %+v, in doubt by %v, unseen %v", r.Load, r.Doubt, r.Unseen)
			}
			if e := w.task(id).Expected; len(e.Loads) > 0 || !w.s.predictor.Save().Population.IsZero() {
				t.Errorf("learned: %+v, %+v", e, w.s.predictor.Save().Population)
			}
		})
	}
}

// TestCoarseReplacesNothing checks that a bound above the known load of a task neither replaces
// the load nor counts as activity of other processes.
func TestCoarseReplacesNothing(t *testing.T) {
	opt := predicting()
	opt.Learn = true
	for _, coarse := range []bool{true, false} {
		w := newWorld(t, opt, 1)
		a := w.does(small, "k")
		w.sample(model.GPUSample{ID: "GPU-0", SMACT: 0.95, SMOCC: 0.95, DRAMA: 0.95, Coarse: coarse})
		w.wait(model.SettleTime)
		w.look()
		g := w.s.GPU("GPU-0")
		if got := g.Resident(a).Load == small; got != coarse {
			t.Errorf("coarse %v: it is taken for %+v", coarse, g.Resident(a).Load)
		}
		g.Resident(a).Load = small
		if more := w.s.predictor.UnexplainedActivity(g); (more == 0) != coarse {
			t.Errorf("coarse %v: others are taken to do %v there", coarse, more)
		}
		w.wait(2 * predict.AloneLeast * time.Second)
		w.exit(a, model.ExitOK)
		if e := w.s.kindHistory("k"); e == nil || (len(e.Loads) == 0) != coarse {
			t.Errorf("coarse %v: the history has %+v", coarse, e)
		}
	}
}

// TestCoarseTime checks that only the time with fine samples counts for the history.
func TestCoarseTime(t *testing.T) {
	opt := predicting()
	opt.Learn = true
	w := newWorld(t, opt, 1)
	a := w.does(small, "k")
	w.seen(small, 0)
	w.wait(model.SettleTime + predict.AloneLeast*time.Second/2)
	w.coarsely(1)
	w.wait(time.Hour)
	w.seen(small, 0)
	w.wait(model.SettleTime)
	r := w.s.GPU("GPU-0").Resident(a)
	w.seen(small, 0)
	if r.Observed.Seconds != predict.AloneLeast/2 {
		t.Errorf("%v s were seen, want %v", r.Observed.Seconds, predict.AloneLeast/2)
	}
	w.wait(predict.AloneLeast * time.Second / 2)
	w.exit(a, model.ExitOK)
	if e := w.s.kindHistory("k"); e == nil || len(e.Loads) != 1 || math.Abs(e.Loads[0].SMACT-small.SMACT) > 1e-9 {
		t.Errorf("the history has %+v", e)
	}
}

// TestFineAfterCoarse checks that, when samples become fine, the activity is estimated again,
// and counts as measured.
func TestFineAfterCoarse(t *testing.T) {
	w := newWorld(t, uncapped(), 1)
	a := w.expecting(model.Expected{}, nil)
	w.coarsely(1)
	w.wait(model.SettleTime)
	w.look()
	w.seen(small, 0)
	w.wait(model.SettleTime - 1)
	w.look()
	r := w.s.GPU("GPU-0").Resident(a)
	if !r.Bound {
		t.Fatalf("found too early: %+v", r)
	}
	w.wait(1)
	w.look()
	if math.Abs(r.Load.SMACT-small.SMACT) > 0.01 || r.Bound || r.Doubt >= model.CoarseDoubt || w.task(a).Expected.Source != model.SourceSeen {
		t.Errorf("it is taken for %+v, expected is %+v", r, w.task(a).Expected)
	}
}

// TestCoarseAfterFine checks that a load from fine samples is not changed by later coarse
// samples.
func TestCoarseAfterFine(t *testing.T) {
	w := newWorld(t, uncapped(), 1)
	passing, b := w.does(nothing, ""), w.does(small, "")
	a := w.expecting(model.Expected{}, nil)
	w.seen(interference.Load{SMACT: 2 * small.SMACT, SMOCC: 2 * small.SMOCC, DRAMA: 2 * small.DRAMA}, 0)
	w.wait(model.SettleTime)
	w.look()
	want := w.task(a).Expected.Loads[0]
	w.coarsely(1)
	w.exit(passing, model.ExitOK)
	w.wait(model.SettleTime)
	w.look()
	for _, id := range []model.TaskID{a, b} {
		if r := w.s.GPU("GPU-0").Resident(id); r.Bound || math.Abs(r.Load.SMACT-small.SMACT) > 0.03 {
			t.Errorf("task %d is taken for %+v", id, r)
		}
	}
	if got := w.task(a).Expected.Loads[0]; got != want {
		t.Errorf("expected is %+v, was %+v", got, want)
	}
}

// TestSpeedsTellMoreThanCoarse checks that a small slowdown of a neighbour proves that a task
// is not heavy, even if some kernel runs all the time.
func TestSpeedsTellMoreThanCoarse(t *testing.T) {
	found := func(rate float64) model.Resident {
		w := newWorld(t, uncapped(), 1)
		a := w.does(small, "")
		pace := func(rate float64, since units.Instant) {
			w.step(model.ThroughputReported{At: w.now, Tasks: []model.Throughput{{Task: a, Attempt: 1, Rate: rate, Error: 0.02, Since: since}}})
		}
		since := w.now
		w.wait(model.SettleTime)
		pace(100, since)
		b := w.expecting(model.Expected{}, nil)
		since = w.now
		w.coarsely(1)
		w.wait(model.SettleTime)
		w.look()
		w.wait(model.SettleTime)
		pace(rate, since)
		return *w.s.GPU("GPU-0").Resident(b)
	}
	quick, slow := found(95), found(40)
	if worst := quick.Load.SMACT + quick.Doubt; worst > 0.7 || slow.Load.SMACT < 0.75 || quick.Doubt >= model.CoarseDoubt {
		t.Errorf("beside a quick one it is taken for %+v, in doubt by %v; beside a slow one for %+v", quick.Load, quick.Doubt, slow.Load)
	}
}

// TestCoarseLearner checks that a learner counts as active when kernels run for more of
// the time than its neighbours' kernels do.
func TestCoarseLearner(t *testing.T) {
	opt := predicting()
	opt.LearnMemory = 2 * time.Minute
	for _, row := range []struct {
		share float64
		want  bool
	}{{small.Busy(), false}, {small.Busy() + 2*predict.ActiveLeast, true}} {
		w := newWorld(t, opt, 1)
		w.does(small, "")
		id := w.submitOnly(nil)
		w.step(model.Estimated{At: w.now, Task: id, Estimate: model.Estimate{WholeGPU: true}, Expected: model.Expected{Loads: loads{small}}})
		w.started(id)
		w.coarsely(row.share)
		if r := w.s.GPU("GPU-0").Resident(id); !r.Learning || (r.ActiveAt != 0) != row.want {
			t.Errorf("at %v: %+v", row.share, r)
		}
	}
}

// TestCoarseIsNeverLearned checks that no activity is ever learned while all samples are
// coarse. The same events with fine samples must change an activity; otherwise this test would
// prove nothing.
func TestCoarseIsNeverLearned(t *testing.T) {
	longer(t)
	learned := map[bool]bool{}
	for _, coarse := range []bool{true, false} {
		rapid.Check(t, func(t *rapid.T) {
			m := newMachine(t)
			m.opt.Learn, m.opt.Policy = true, "carma"
			m.step(t, model.Configured{At: m.now, Options: m.opt, Format: model.DecisionFormat})
			look := func(t *rapid.T) {
				var gpus []model.GPUSample
				for _, g := range m.s.GPUs() {
					share := rapid.SampledFrom([]float64{0, 0.3, 0.9, 1}).Draw(t, "share")
					gpus = append(gpus, model.GPUSample{ID: g.ID, SMACT: share, SMOCC: share, DRAMA: share, Coarse: coarse})
				}
				m.now = m.now.Add(rapid.SampledFrom([]time.Duration{time.Second, model.SettleTime, time.Hour}).Draw(t, "after"))
				m.step(t, model.Sampled{At: m.now, GPUs: gpus})
			}
			look(t)
			t.Repeat(map[string]func(*rapid.T){
				"submit": m.submit, "estimate": m.estimate, "start": m.start, "exit": m.exit, "engine": m.engine, "restart": m.restart, "look": look,
				"": func(t *rapid.T) {
					for _, e := range m.s.predictor.Save().History {
						learned[coarse] = learned[coarse] || len(e.Loads) > 0
					}
					for _, task := range m.s.TaskList() {
						learned[coarse] = learned[coarse] || task.Expected.Source == model.SourceSeen
					}
					if learned[coarse] = learned[coarse] || !m.s.predictor.Save().Population.IsZero(); coarse && learned[coarse] {
						t.Fatal("an activity was learned")
					}
				},
			})
		})
	}
	if !learned[false] && !testing.Short() {
		t.Error("nothing is learned from samples that are not coarse")
	}
}
