package mapper

import (
	"fmt"
	"math"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/interference"
	"carma/mapper/model"
)

// like is a task of a user, image and program.
func like(user, image, program string) func(*model.Request) {
	return func(r *model.Request) { r.User, r.Image, r.Program = user, image, program }
}

// meets counts tasks that turned out to have a load.
func meets(s *State, n int, l interference.Load, of func(*model.Request)) {
	for range n {
		t := &model.Task{Request: model.Request{GPUs: 1}}
		of(&t.Request)
		s.predictor.countClass(t, l)
	}
}

// TestMixNarrows checks that the likely classes of a task follow the tasks with which it
// has most in common: all tasks, or the tasks of its user, its image, its program.
func TestMixNarrows(t *testing.T) {
	for _, row := range []struct {
		name  string
		seen  func(s *State)
		of    func(*model.Request)
		class class
		least float64 // how likely it is of the class
		most  float64
	}{
		{"nothing was seen", func(*State) {}, like("ada", "i", "p"), mediumTask, 0.45, 0.45},
		{"others' tasks", func(s *State) { meets(s, 20, faint, like("bob", "j", "q")) }, like("ada", "i", "p"), lightTask, 0.65, 0.70},
		{"the user's tasks", func(s *State) { meets(s, 12, heavy, like("ada", "j", "q")); meets(s, 50, faint, like("bob", "k", "r")) }, like("ada", "i", "p"), heavyTask, 0.75, 0.85},
		{"another user's tasks of the image", func(s *State) { meets(s, 12, heavy, like("bob", "i", "q")); meets(s, 50, faint, like("eve", "k", "r")) }, like("ada", "i", "p"), heavyTask, 0.70, 0.85},
		{"the program, of a user who does all", func(s *State) {
			meets(s, 20, heavy, like("ada", "i", "q"))
			meets(s, 20, faint, like("ada", "i", "r"))
			meets(s, 8, mid, like("ada", "i", "p"))
		}, like("ada", "i", "p"), mediumTask, 0.70, 0.85},
		{"nobody is named", func(s *State) { meets(s, 12, heavy, like("", "", "")) }, like("", "", ""), heavyTask, 0.45, 0.50},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := New(predicting())
			row.seen(s)
			task := &model.Task{Request: model.Request{GPUs: 1}}
			row.of(&task.Request)
			m := s.predictor.priorOf(task)
			if got := m[row.class]; got < row.least-1e-9 || got > row.most+1e-9 {
				t.Errorf("it is of class %d with %.2f, want %.2f to %.2f: %v", row.class, got, row.least, row.most, m)
			}
			sum := 0.0
			for _, p := range m {
				if sum += p; math.Abs(p/mixStep-math.Round(p/mixStep)) > 1e-9 {
					t.Errorf("%v is not in steps", m)
				}
			}
			if sum < 0.9 || sum > 1.1 {
				t.Errorf("%v sums to %v", m, sum)
			}
			task.Expected.Loads = loads{mid}
			if s.predictor.priorOf(task).unknown() {
				t.Error("a known load is in doubt")
			}
		})
	}
}

// TestMixOfSeveralGPUs: tasks on several GPUs are another matter.
func TestMixOfSeveralGPUs(t *testing.T) {
	s := New(predicting())
	meets(s, 50, faint, like("ada", "", ""))
	several := &model.Task{Request: model.Request{GPUs: 2, User: "ada"}}
	if got := s.predictor.priorOf(several); got != firstMixFew {
		t.Errorf("it may be %v", got)
	}
	s.predictor.countClass(several, heavy)
	one := &model.Task{Request: model.Request{GPUs: 1, User: "bob"}}
	before := s.predictor.priorOf(one)
	meets(s, 50, heavy, func(r *model.Request) { r.User, r.GPUs = "ada", 2 })
	if got := s.predictor.priorOf(one); got != before {
		t.Errorf("tasks on two GPUs made one on one %v, before %v", got, before)
	}
}

// TestClasses: a class ends in the middle between two typical loads.
func TestClasses(t *testing.T) {
	for _, row := range []struct {
		smact float64
		want  class
	}{{0, lightTask}, {0.38, lightTask}, {0.39, mediumTask}, {0.70, mediumTask}, {0.72, heavyTask}, {1, heavyTask}} {
		if got := classOf(interference.Load{SMACT: row.smact}); got != row.want {
			t.Errorf("%v is of class %d", row.smact, got)
		}
	}
}

// TestCrowdsAreBounded checks that the oldest groups are dropped.
func TestCrowdsAreBounded(t *testing.T) {
	s := New(predicting())
	for i := range maxGroups + 10 {
		meets(s, 1, heavy, like(fmt.Sprint("user", i), "", ""))
	}
	if n := len(s.predictor.classCounts.Groups); n > maxGroups {
		t.Errorf("%d groups", n)
	}
	if got := s.predictor.priorOf(&model.Task{Request: model.Request{GPUs: 1, User: fmt.Sprint("user", maxGroups+9)}}); got[heavyTask] < 0.3 {
		t.Errorf("the last user's next task may be %v", got)
	}
	for i, c := range s.predictor.classCounts.Groups {
		if s.predictor.classCounts.index[groupKeyOf(c.Name)] != i {
			t.Fatalf("group %s is at %d, found at %d", c.Name, i, s.predictor.classCounts.index[groupKeyOf(c.Name)])
		}
	}
}

// TestDoubtDecides checks that an unknown task may join a task of medium activity if
// similar tasks are light or medium, but not if they are heavy.
func TestDoubtDecides(t *testing.T) {
	for _, row := range []struct {
		name string
		user interference.Load // what ten tasks of the user did
		seen int
		fits bool
	}{{"nothing was seen", nothing, 0, true}, {"light", faint, 10, true}, {"heavy", heavy, 10, false}} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t, predicting(), 1)
			w.put(0, resnet, "")
			meets(w.s, row.seen, row.user, like("ada", "", ""))
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
	i, ok := w.s.predictor.classCounts.index[groupKey{"1", "u", "ada"}]
	if !ok || w.s.predictor.classCounts.Groups[i].Counts != (classPrior{0, 0, 2}) {
		t.Errorf("counted are %+v", w.s.predictor.classCounts.Groups)
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
	g := w.s.GPU("GPU-0")
	id := w.s.placer.candidatesOf(w.task(waits))[0]
	clone := w.s.Clone()
	if got, want := w.s.placer.score(g, id), clone.placer.score(clone.GPU("GPU-0"), clone.placer.candidatesOf(clone.TaskByID(waits))[0]); got != want {
		t.Errorf("a task is weighed as %+v, by a copy as %+v", got, want)
	}
	if done := w.task(a).Done; math.Abs(done-60*before) > 1 {
		t.Errorf("a minute at speed %.3f was %.0f s of work", before, done)
	}
}
