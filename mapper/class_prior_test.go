package mapper

import (
	"math"
	"slices"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/interference"
	"carma/mapper/model"
	"carma/mapper/predict"
)

// like makes a task of a user, image and program.
func like(user, image, program string) func(*model.Request) {
	return func(r *model.Request) { r.User, r.Image, r.Program = user, image, program }
}

// countClass adds a group whose tasks had a load of this class.
func (s *State) countClass(group string, n int, l interference.Load) {
	snap := s.predictor.Save()
	counts := predict.ClassPrior{}
	counts[slices.IndexFunc(predict.TypicalLoads[:], func(of interference.Load) bool { return of.SMACT >= l.SMACT-0.1 })] = float64(n)
	snap.Population.Groups = append(slices.Clone(snap.Population.Groups), predict.ClassGroup{Name: group, Counts: counts})
	if err := s.predictor.Restore(snap); err != nil {
		panic(err)
	}
	s.placer.DropCache()
}

// TestDoubtDecides checks that an unknown task may join a task of medium activity if
// similar tasks are light or medium, but not if they are heavy.
func TestDoubtDecides(t *testing.T) {
	for _, row := range []struct {
		name string
		user interference.Load // observed load of ten tasks of the user
		seen int
		fits bool
	}{{"nothing was seen", nothing, 0, true}, {"light", faint, 10, true}, {"heavy", heavy, 10, false}} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t, predicting(), 1)
			w.put(0, resnet, "")
			w.s.countClass("1uada", row.seen, row.user)
			id := w.expecting(model.Expected{}, like("ada", "", ""))
			if got := w.on(id) != nil; got != row.fits {
				t.Errorf("it is placed: %v", got)
			}
			if !row.fits {
				w.wantWhy(id, "GPU 0 slowdown")
			}
		})
	}
}

// TestSeenTasksAreCounted checks that a task is counted once, when its load is observed.
func TestSeenTasksAreCounted(t *testing.T) {
	w := newWorld(t, uncapped(), 1)
	for range 2 {
		a := w.expecting(model.Expected{}, like("ada", "", ""))
		w.shows(heavy)
		w.wait(model.SettleTime)
		w.look()
		w.exit(a, model.ExitOK)
	}
	w.does(heavy, "") // its load is known, so it is not counted
	w.wait(model.SettleTime)
	w.look()
	groups := w.s.predictor.Save().Population.Groups
	if !slices.ContainsFunc(groups, func(g predict.ClassGroup) bool { return g.Name == "1uada" && g.Counts == predict.ClassPrior{0, 0, 2} }) {
		t.Errorf("counted are %+v", groups)
	}
}

// turning returns GPUs of which the first is time-sliced.
func turning() []model.GPUInfo {
	return []model.GPUInfo{
		{ID: gpuID(0), Index: 0, Capacity: 40 * units.GiB, Sharing: model.SharingTurns},
		{ID: gpuID(1), Index: 1, Capacity: 40 * units.GiB},
	}
}

// TestSharingIsPredicted checks that predictions depend on how each GPU is shared.
func TestSharingIsPredicted(t *testing.T) {
	w := newWorldOf(t, predicting(), turning()...)
	w.put(0, resnet, "")
	w.put(1, resnet, "")
	id := w.does(resnet, "")
	w.wantOn(id, 1)
	mps := w.task(id).Speed
	want := interference.Speeds(loads{resnet, resnet})
	if math.Abs(mps-want[1]) > 1e-9 {
		t.Errorf("with MPS it is predicted at %v, want %v", mps, want[1])
	}
	next := w.does(resnet, "")
	w.wantOn(next)
	turns := interference.Speeds(loads{resnet, resnet})
	interference.TakeTurns([]float64{resnet.Busy(), resnet.Busy()}, turns)
	if no := w.whyNot(next, 0); no.Rule != model.RuleSlowdown || math.Abs(no.Slowdown-1/turns[0]) > 0.02 {
		t.Errorf("in turns it is turned down for %+v; the model says %.3f", no, 1/turns[0])
	}
}

// TestSharingChanges checks that all speeds are predicted again when sharing changes.
func TestSharingChanges(t *testing.T) {
	w := newWorld(t, uncapped(), 1)
	a, b := w.put(0, resnet, ""), w.put(0, resnet, "")
	waits := w.submit(40*units.GiB, nil)
	w.look()
	before := w.task(a).Speed
	w.wait(time.Minute)
	w.step(model.GPUsFound{At: w.now, GPUs: turning()[:1]})
	if got := w.task(a).Speed; !(got < before-0.1) || w.task(b).Speed != got {
		t.Errorf("with MPS it went at %.3f, in turns it goes at %.3f", before, got)
	}
	added := func(s *State) (float64, model.Rule) {
		v := s.placer.View()
		return v.Added(s.GPU("GPU-0"), v.Candidates(s.TaskByID(waits))[0])
	}
	clone := w.s.Clone()
	got, rule := added(w.s)
	if want, wantRule := added(clone); got != want || rule != wantRule {
		t.Errorf("a task adds %v s, %q; in a copy %v s, %q", got, rule, want, wantRule)
	}
	if done := w.task(a).Done; math.Abs(done-60*before) > 1 {
		t.Errorf("a minute at speed %.3f was %.0f s of work", before, done)
	}
}
