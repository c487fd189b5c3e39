package mapper

import (
	"testing"
	"time"

	"carma/mapper/units"
)

// TestSiblingsLearn: of tasks that are submitted together and do the same work,
// those that wait profit from the first one that has run.
func TestSiblingsLearn(t *testing.T) {
	opt := letLearn()
	opt.Learn = true
	w := newWorld(t, opt, 1)
	same := func(r *Request) { r.Kind = "k" }
	first, second, third := w.learner(same), w.learner(same), w.learner(func(r *Request) { r.Kind = "other" })
	w.works(0.5, TaskUse{Task: first, Used: 6 * units.GiB})
	w.wait(time.Minute)
	w.exit(first, ExitOK)

	want := max((6 * units.GiB).Scale(learnedFactor), 6*units.GiB+learnedLeast)
	if s := w.task(second); s.Learner || s.Need != want {
		t.Errorf("the second of the kind needs %s (learner: %v), want %s", s.Need, s.Learner, want)
	}
	w.wantGrant(second, want)
	if o := w.task(third); !o.Learner {
		t.Errorf("a task of another kind needs %s", o.Need)
	}
}
