package mapper

import (
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/interference"
	"carma/mapper/model"
	"carma/mapper/predict"
)

// TestSiblingsLearn checks that, of tasks submitted together that do the same work, the
// waiting ones learn from the first one that has run.
func TestSiblingsLearn(t *testing.T) {
	opt := letLearn()
	opt.Learn = true
	w := newWorld(t, opt, 1)
	same := func(r *model.Request) { r.Kind = "k" }
	first, second, third := w.learner(same), w.learner(same), w.learner(func(r *model.Request) { r.Kind = "other" })
	w.works(0.5, model.TaskUse{Task: first, Used: 6 * units.GiB})
	w.wait(time.Minute)
	w.exit(first, model.ExitOK)

	want := max((6 * units.GiB).Scale(predict.LearnedFactor), 6*units.GiB+predict.LearnedLeast)
	if s := w.task(second); s.Learner || s.NextGrant != want {
		t.Errorf("the second of the kind needs %s (learner: %v), want %s", s.NextGrant, s.Learner, want)
	}
	w.wantGrant(second, want)
	if o := w.task(third); !o.Learner {
		t.Errorf("a task of another kind needs %s", o.NextGrant)
	}
}

// TestGateLearns checks that a filter by activity accepts a waiting task when the activity of a
// task of its kind becomes known, although no GPU has changed.
func TestGateLearns(t *testing.T) {
	opt := plain()
	opt.Policy, opt.Learn = "lucid", true
	w := newWorld(t, opt, 2)
	same := func(r *model.Request) { r.Kind = "k" }
	first := w.submit(30*units.GiB, same)
	w.wantOn(first, 0)
	w.started(first)
	beside := w.does(interference.Load{SMACT: 0.3, SMOCC: 0.2, DRAMA: 0.2}, "other")
	w.wantOn(beside, 1)
	w.started(beside)
	waits := w.submit(30*units.GiB, same)
	w.wantPhase(waits, model.Queued)
	for range 20 {
		w.wait(15 * time.Second)
		w.sample(model.GPUSample{ID: gpuID(0), Used: 5 * units.GiB, SMACT: 0.05, SMOCC: 0.02, DRAMA: 0.02, Tasks: []model.TaskUse{{Task: first, Used: 5 * units.GiB}}})
	}
	if w.on(waits) == nil {
		why, _ := w.s.Why(waits)
		t.Errorf("it waits: %+v", why)
	}
}
