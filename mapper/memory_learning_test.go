package mapper

import (
	"fmt"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/ledger"
	"carma/mapper/model"
	"carma/mapper/predict"
)

// letLearn returns options with which only memory decides, and the memory of a task without an
// estimate is learned.
func letLearn() model.Options {
	opt := plain()
	opt.LearnMemory = 2 * time.Minute
	return opt
}

// learner submits an unknown task. It runs at once if it is placed.
func (w *world) learner(edit func(*model.Request)) model.TaskID {
	w.t.Helper()
	id := w.submitEstimate(model.Estimate{WholeGPU: true}, edit)
	if w.on(id) != nil {
		w.started(id)
	}
	return id
}

// works sends a sample of GPU-0: its SM activity and its tasks' use.
func (w *world) works(smact float64, uses ...model.TaskUse) {
	w.t.Helper()
	s := model.GPUSample{ID: "GPU-0", SMACT: smact, Tasks: uses}
	for _, u := range uses {
		s.Used += u.Used
	}
	w.sample(s)
}

// settledAt returns the memory to which a learner's grant is cut.
func settledAt(peak units.Bytes) units.Bytes {
	return peak.Scale(predict.SettledFactor) + predict.SettledExtra
}

// TestLearnerHasAllFreeMemory checks that a learner starts where a part of the card is
// free, on GPUs that it may share.
func TestLearnerHasAllFreeMemory(t *testing.T) {
	const part = 40 * units.GiB / ledger.LearnerPart
	for _, row := range []struct {
		taken units.Bytes // memory of another task
		want  units.Bytes // grant, or 0 if it waits
	}{{0, 40 * units.GiB}, {10 * units.GiB, 30 * units.GiB}, {40*units.GiB - part, part}, {40*units.GiB - part + 1, 0}} {
		t.Run(row.taken.String(), func(t *testing.T) {
			w := newWorld(t, letLearn(), 1)
			if row.taken > 0 {
				w.started(w.submit(row.taken, nil))
			}
			id := w.learner(nil)
			if row.want == 0 {
				w.wantOn(id)
				return
			}
			w.wantGrant(id, row.want)
			if w.launches[len(w.launches)-1].Alone || w.task(id).NextExclusive {
				t.Error("it has the GPU for itself")
			}
		})
	}
}

// TestLearnerLeavesTheMargin checks that a learner leaves the margin free beside others.
func TestLearnerLeavesTheMargin(t *testing.T) {
	opt := letLearn()
	opt.Margin = 3 * units.GiB
	w := newWorld(t, opt, 1)
	w.started(w.submit(10*units.GiB, nil))
	w.wantGrant(w.learner(nil), 27*units.GiB)
	w = newWorld(t, opt, 1)
	w.wantGrant(w.learner(nil), 40*units.GiB)
}

// TestNoLearner checks that tasks that are no learners get exclusive GPUs.
func TestNoLearner(t *testing.T) {
	for _, row := range []struct {
		name string
		edit func(*model.Options)
		with func(*model.Request)
	}{
		{"it is off", func(o *model.Options) { o.LearnMemory = 0 }, nil},
		{"samples are booked", func(o *model.Options) { o.Booking = model.BookSamples }, nil},
		{"one task per GPU", func(o *model.Options) { o.Policy = "exclusive" }, nil},
		{"it wants GPUs for itself", nil, whole},
	} {
		t.Run(row.name, func(t *testing.T) {
			opt := letLearn()
			if row.edit != nil {
				row.edit(&opt)
			}
			w := newWorld(t, opt, 1)
			if id := w.learner(row.with); w.task(id).Learner || !w.gpu(0).Residents[0].Exclusive {
				t.Errorf("%+v on %+v", w.task(id), w.gpu(0).Residents)
			}
		})
	}
}

// TestLearnerIsCut checks that others may join once a learner is active and its memory
// has not grown for the configured time, and no sooner.
func TestLearnerIsCut(t *testing.T) {
	w := newWorld(t, letLearn(), 1)
	a := w.learner(nil)
	b := w.submit(20*units.GiB, nil)
	w.wait(time.Minute)
	w.works(0.5, model.TaskUse{Task: a, Used: 8 * units.GiB})
	w.wait(time.Minute)
	w.works(0.5, model.TaskUse{Task: a, Used: 10 * units.GiB}) // it grows
	w.wait(2*time.Minute - 1)
	w.wantGrant(a, 40*units.GiB)
	w.wantOn(b)
	w.wait(1)
	w.wantGrant(a, settledAt(10*units.GiB))
	w.wantOn(b, 0)
}

// TestLearnerThatLoadsData checks that constant memory proves nothing while a task is not
// active. Samples or its output show when it becomes active. After ActivePatience it is assumed
// to leave the GPU idle.
func TestLearnerThatLoadsData(t *testing.T) {
	for _, row := range []struct {
		name  string
		begin func(w *world, id model.TaskID) // its event after five minutes
		cut   time.Duration                   // time of the cut after the last growth
	}{
		{"never", func(*world, model.TaskID) {}, predict.ActivePatience},
		{"samples", func(w *world, id model.TaskID) {
			w.works(predict.ActiveLeast, model.TaskUse{Task: id, Used: 2 * units.GiB})
		}, 7 * time.Minute},
		{"too little", func(w *world, id model.TaskID) {
			w.works(predict.ActiveLeast-0.01, model.TaskUse{Task: id, Used: 2 * units.GiB})
		}, predict.ActivePatience},
		{"its output", func(w *world, id model.TaskID) { w.tells(id, 3) }, 7 * time.Minute},
		{"it grows as it begins", func(w *world, id model.TaskID) { w.works(0.5, model.TaskUse{Task: id, Used: 3 * units.GiB}) }, 7 * time.Minute},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t, letLearn(), 1)
			a := w.learner(nil)
			w.works(0, model.TaskUse{Task: a, Used: 2 * units.GiB})
			w.wait(5 * time.Minute)
			row.begin(w, a)
			w.wait(row.cut - 5*time.Minute - 1)
			w.wantGrant(a, 40*units.GiB)
			w.wait(1)
			w.wantGrant(a, settledAt(w.gpu(0).Residents[0].Peak))
		})
	}
}

// TestLearnerIsActiveBesideOthers checks that its neighbours' activity is not attributed
// to a learner.
func TestLearnerIsActiveBesideOthers(t *testing.T) {
	for _, row := range []struct {
		smact  float64
		active bool
	}{{0.30, false}, {0.50, true}} {
		opt := uncapped()
		opt.LearnMemory = 2 * time.Minute
		w := newWorld(t, opt, 1)
		b := w.put(0, predict.TypicalLoads[predict.MediumTask], "")
		a := w.learner(nil)
		others := w.s.GPU("GPU-0").Residents[0]
		w.works(row.smact, model.TaskUse{Task: a, Used: 2 * units.GiB}, model.TaskUse{Task: b, Used: units.GiB})
		if got := w.s.GPU("GPU-0").Resident(a).ActiveAt != 0; got != row.active {
			t.Errorf("at %.2f beside one of %.2f at speed %.2f it is busy: %v", row.smact, others.Load.SMACT, others.Speed, got)
		}
	}
}

// TestGrantIsNotCutUnseen checks that a learner without memory samples keeps its grant, and
// that a learner keeps its grant after the option was switched off.
func TestGrantIsNotCutUnseen(t *testing.T) {
	w := newWorld(t, letLearn(), 1)
	a := w.learner(nil)
	w.tells(a, 3)
	w.wait(time.Hour)
	w.look()
	w.wantGrant(a, 40*units.GiB)

	w = newWorld(t, letLearn(), 1)
	a = w.learner(nil)
	w.step(model.Configured{At: w.now, Options: plain()})
	w.works(0.5, model.TaskUse{Task: a, Used: 2 * units.GiB})
	w.wait(time.Hour)
	w.look()
	w.wantGrant(a, 40*units.GiB)
}

// TestSecondLearnerWaits checks that a second learner waits until the memory of the first is
// known, with that reason.
func TestSecondLearnerWaits(t *testing.T) {
	w := newWorld(t, letLearn(), 1)
	a, b := w.learner(nil), w.learner(nil)
	w.wantOn(b)
	if no := w.whyNot(b, 0); no.Rule != model.RuleMemory || no.Learner != a || no.Span != 2*time.Minute {
		t.Errorf("it waits because %+v", no)
	}
	w.works(0.5, model.TaskUse{Task: a, Used: 10 * units.GiB})
	w.wait(2 * time.Minute)
	w.wantOn(b, 0)
	w.wantGrant(b, 40*units.GiB-settledAt(10*units.GiB))
	c := w.submit(35*units.GiB, nil)
	w.started(b)
	w.works(0.9, model.TaskUse{Task: a, Used: 10 * units.GiB}, model.TaskUse{Task: b, Used: 5 * units.GiB})
	w.wait(2 * time.Minute)
	w.wantOn(c)
	if no := w.whyNot(c, 0); no.Rule != model.RuleMemory || no.Learner != 0 {
		t.Errorf("both are known, and it waits because %+v", no)
	}
}

// TestLearnerOnTwoGPUs checks that the grant on each GPU is cut to the need there.
func TestLearnerOnTwoGPUs(t *testing.T) {
	w := newWorld(t, letLearn(), 2)
	w.openOnly(0)
	w.started(w.submit(10*units.GiB, nil))
	w.openOnly(-1)
	a := w.learner(gpus(2))
	w.wantOn(a, 1, 0)
	w.sample(model.GPUSample{ID: "GPU-0", SMACT: 0.9, Tasks: []model.TaskUse{{Task: a, Used: 6 * units.GiB}}}, model.GPUSample{ID: "GPU-1", SMACT: 0.9, Tasks: []model.TaskUse{{Task: a, Used: 20 * units.GiB}}})
	w.wait(2 * time.Minute)
	if g0, g1 := w.gpu(0), w.gpu(1); g0.Residents[1].Grant != settledAt(6*units.GiB) || g1.Residents[0].Grant != settledAt(20*units.GiB) {
		t.Errorf("it is granted %s and %s", g0.Residents[1].Grant, g1.Residents[0].Grant)
	}
}

// TestLearnerOOM checks that a learner gets more memory each time, and finally exclusive
// GPUs.
func TestLearnerOOM(t *testing.T) {
	w := newWorld(t, letLearn(), 1)
	w.started(w.submit(25*units.GiB, nil))
	a := w.learner(nil)
	w.wantGrant(a, 15*units.GiB)
	for i, want := range []struct {
		need  units.Bytes
		alone bool
	}{
		{predict.AfterOOM(15 * units.GiB), false},
		{predict.AfterOOM(15 * units.GiB).Scale(1.5), false},
		{settledAt(units.GiB), true}, // at least the known demand
	} {
		w.exitWith(model.Exited{Task: a, Class: model.ExitGPUOOM})
		if got := w.task(a); got.NextGrant != want.need || got.NextExclusive != want.alone {
			t.Fatalf("after %d OOMs it needs %s, alone: %v; want %s, %v", i+1, got.NextGrant, got.NextExclusive, want.need, want.alone)
		}
		if i == 0 { // it no longer fits beside the other task, and gets all memory when the other task ends
			w.wantOn(a)
			w.exit(1, model.ExitOK)
		}
		if want.alone {
			w.wantOn(a)
			w.exit(3, model.ExitOK)
			w.exit(4, model.ExitOK)
		}
		w.wantOn(a, 0)
		w.started(a)
		if i < 2 { // without another task it would have had all memory
			w.works(1, model.TaskUse{Task: a, Used: units.GiB})
			w.wait(2 * time.Minute)
			w.wantGrant(a, settledAt(units.GiB))
			w.submit(units.GiB, nil)
		}
	}
}

// TestLearnerOOMInVain checks that a learner that ran out of memory on a whole card does not
// run on a card of that size again.
func TestLearnerOOMInVain(t *testing.T) {
	for _, row := range []struct {
		name   string
		before func(w *world, a model.TaskID)
		demand units.Bytes
	}{
		{"before it was known", func(*world, model.TaskID) {}, 0},
		{"it grew later, and nobody was there", func(w *world, a model.TaskID) {
			w.works(0.5, model.TaskUse{Task: a, Used: 10 * units.GiB})
			w.wait(2 * time.Minute)
			w.wantGrant(a, settledAt(10*units.GiB))
		}, 41 * units.GiB},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t, letLearn(), 1)
			a := w.learner(nil)
			row.before(w, a)
			w.exitWith(model.Exited{Task: a, Class: model.ExitGPUOOM, Demand: row.demand})
			w.wantPhase(a, model.Failed)
			if got := w.finished[a].Reason.Code; got != model.ReasonOOMAlone {
				t.Errorf("it failed because %s", got)
			}
		})
	}
}

// TestMarginsAreReclaimed checks that the margins of learners above their peaks go to a
// growing neighbour, and that no grant is cut below the use.
func TestMarginsAreReclaimed(t *testing.T) {
	opt := letLearn()
	opt.Watchdog = model.WatchdogWarn
	w := newWorld(t, opt, 1)
	a := w.learner(nil)
	w.works(0.5, model.TaskUse{Task: a, Used: 10 * units.GiB})
	w.wait(2 * time.Minute)
	margin := settledAt(10 * units.GiB)
	b := w.submit(40*units.GiB-margin, nil)
	w.wantOn(b, 0)
	w.started(b)
	w.works(0.9, model.TaskUse{Task: a, Used: 10 * units.GiB}, model.TaskUse{Task: b, Used: 28*units.GiB + 600*units.MiB})
	least := 10*units.GiB + 128*units.MiB // reclaimedExtra
	w.wantGrant(a, least)
	w.wantGrant(b, 40*units.GiB-least)
	w.works(0.9, model.TaskUse{Task: a, Used: 10 * units.GiB}, model.TaskUse{Task: b, Used: 35 * units.GiB})
	w.wantGrant(a, least) // there is no more memory

	// A learner whose memory is not known yet keeps all.
	w = newWorld(t, opt, 1)
	b = w.submit(5*units.GiB, nil)
	w.started(b)
	a = w.learner(nil)
	w.works(0.5, model.TaskUse{Task: a, Used: 10 * units.GiB}, model.TaskUse{Task: b, Used: 6 * units.GiB})
	w.wantGrant(a, 35*units.GiB)
}

// TestMarginFollowsGrowth checks that the margin of further learners covers the growth of
// earlier ones after they seemed to be known.
func TestMarginFollowsGrowth(t *testing.T) {
	w := newWorld(t, letLearn(), 1)
	run := func(peak, later units.Bytes) (granted units.Bytes) {
		a := w.learner(nil)
		w.works(0.5, model.TaskUse{Task: a, Used: peak})
		w.wait(2 * time.Minute)
		granted = w.gpu(0).Residents[0].Grant
		w.works(0.5, model.TaskUse{Task: a, Used: later})
		w.exit(a, model.ExitOK)
		return granted
	}
	for range 2 {
		if got := run(10*units.GiB, 14*units.GiB); got != settledAt(10*units.GiB) {
			t.Fatalf("cut to %s", got)
		}
	}
	got, want := run(10*units.GiB, 10*units.GiB), (10*units.GiB).Scale(1.4)+predict.SettledExtra
	if got < want-units.MiB || got > want+units.MiB {
		t.Errorf("after two have grown by 40 %% cut to %s, want %s", got, want)
	}
	for _, row := range []struct {
		h    predict.MemoryGrowth
		want float64
	}{
		{predict.MemoryGrowth{}, predict.SettledFactor}, {predict.MemoryGrowth{Settled: 1, Grew: 1, Sum: 0.5}, predict.SettledFactor}, {predict.MemoryGrowth{Settled: 2, Grew: 2, Sum: 1}, 1.5},
		{predict.MemoryGrowth{Settled: 24, Grew: 2, Sum: 1}, predict.SettledFactor}, {predict.MemoryGrowth{Settled: 23, Grew: 2, Sum: 1}, 1.5}, {predict.MemoryGrowth{Settled: 2, Grew: 2, Sum: 0.05}, predict.SettledFactor},
	} {
		if got := row.h.Margin(); got != row.want {
			t.Errorf("%+v: the margin is %v, want %v", row.h, got, row.want)
		}
	}
}

// TestLearnerQuota checks that a learner is granted no more than its user's quota, and
// starts if that is enough to start.
func TestLearnerQuota(t *testing.T) {
	opt := letLearn()
	opt.QuotaMemory = 20 * units.GiB
	w := newWorld(t, opt, 2)
	ada := func(r *model.Request) { r.User = "ada" }
	if err := w.s.Check(model.Request{GPUs: 1}, model.Estimate{WholeGPU: true}); err != nil {
		t.Fatal(err)
	}
	a := w.learner(ada)
	w.wantGrant(a, 20*units.GiB)
	b := w.learner(ada)
	w.wantOn(b)
	if why, _ := w.s.Why(b); why.Rule != model.RuleQuota {
		t.Errorf("it waits because %s", sayWhy(why))
	}
	w.works(0.5, model.TaskUse{Task: a, Used: 5 * units.GiB})
	w.wait(2 * time.Minute)
	w.wantOn(b, 1)
	w.wantGrant(b, 20*units.GiB-settledAt(5*units.GiB))

	w = newWorld(t, opt, 2)
	two := w.learner(func(r *model.Request) { r.User, r.GPUs = "ada", 2 })
	w.wantGrant(two, 10*units.GiB)

	opt.QuotaMemory = 40*units.GiB/ledger.LearnerPart - 1 // less than a learner starts with
	w = newWorld(t, opt, 1)
	if id := w.learner(ada); w.finished[id].Phase != model.Failed {
		t.Errorf("it is %s, and can never start", w.task(id).Phase)
	}
}

// TestLearnedPeakIsBooked checks that the next task of the kind is no learner.
func TestLearnedPeakIsBooked(t *testing.T) {
	opt := letLearn()
	opt.Learn = true
	w := newWorld(t, opt, 1)
	a := w.learner(kind("k", ""))
	w.works(0.5, model.TaskUse{Task: a, Used: 10 * units.GiB})
	w.wait(2 * time.Minute)
	w.exit(a, model.ExitOK)
	b := w.learner(kind("k", ""))
	if got := fmt.Sprint(w.task(b).Learner, w.task(b).Current().Grants[0].Memory); got != fmt.Sprint(false, (10*units.GiB).Scale(predict.LearnedFactor)) {
		t.Errorf("learner, grant: %s", got)
	}
}

// TestLearnerIsSeenAtWork checks that the load of a learner is not estimated while it
// loads data.
func TestLearnerIsSeenAtWork(t *testing.T) {
	opt := uncapped()
	opt.LearnMemory = 2 * time.Minute
	w := newWorld(t, opt, 1)
	a := w.learner(nil)
	w.works(0.01, model.TaskUse{Task: a, Used: 2 * units.GiB})
	w.wait(5 * time.Minute)
	w.look()
	w.works(0.75, model.TaskUse{Task: a, Used: 2 * units.GiB})
	w.wait(model.SettleTime - 1)
	w.look()
	if w.loadOf(a) != model.UnknownLoad {
		t.Fatalf("it is taken for %+v before it was at work for long", w.loadOf(a))
	}
	w.wait(1)
	if got := w.loadOf(a).SMACT; got < 0.74 || got > 0.76 {
		t.Errorf("it is taken for SMACT %v, and is 0.75", got)
	}

	w = newWorld(t, opt, 1) // a learner that never becomes active counts as leaving the GPU idle
	a = w.learner(nil)
	w.works(0.01, model.TaskUse{Task: a, Used: 2 * units.GiB})
	w.wait(predict.ActivePatience)
	if got := w.loadOf(a).SMACT; got != predict.UnknownLeast {
		t.Errorf("it is taken for SMACT %v, and does nothing", got)
	}
}

// TestLargeIsNoLearner checks that a task known to need more than a shared GPU can give
// gets exclusive GPUs.
func TestLargeIsNoLearner(t *testing.T) {
	w := newWorld(t, letLearn(), 1)
	w.started(w.submit(4*units.GiB, nil))
	id := w.submitEstimate(model.Estimate{WholeGPU: true, Large: true}, nil)
	w.wantOn(id)
	if task := w.task(id); task.Learner || !task.NextExclusive {
		t.Errorf("learner: %v, alone: %v", task.Learner, task.NextExclusive)
	}
}
