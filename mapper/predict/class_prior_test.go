package predict

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"carma/mapper/interference"
	"carma/mapper/ledger"
	"carma/mapper/model"
)

// Loads of a light, a medium and a heavy task.
var (
	faint = TypicalLoads[LightTask]
	mid   = TypicalLoads[MediumTask]
	heavy = TypicalLoads[HeavyTask]
)

func empty() *Predictor { return New(ledger.New(model.Options{}, false)) }

// like makes a task of a user, image and program.
func like(user, image, program string) func(*model.Request) {
	return func(r *model.Request) { r.User, r.Image, r.Program = user, image, program }
}

// meets counts n tasks with an observed load.
func meets(s *Predictor, n int, l interference.Load, of func(*model.Request)) {
	for range n {
		t := &model.Task{Request: model.Request{GPUs: 1}}
		of(&t.Request)
		s.countClass(t, l)
	}
}

// TestMixNarrows checks that the prior of a task follows the tasks with which it has most in
// common: all tasks, or the tasks of its user, its image, its program.
func TestMixNarrows(t *testing.T) {
	for _, row := range []struct {
		name  string
		seen  func(s *Predictor)
		of    func(*model.Request)
		class Class
		least float64 // least probability of the class
		most  float64
	}{
		{"nothing was seen", func(*Predictor) {}, like("ada", "i", "p"), MediumTask, 0.45, 0.45},
		{"others' tasks", func(s *Predictor) { meets(s, 20, faint, like("bob", "j", "q")) }, like("ada", "i", "p"), LightTask, 0.65, 0.70},
		{"the user's tasks", func(s *Predictor) {
			meets(s, 12, heavy, like("ada", "j", "q"))
			meets(s, 50, faint, like("bob", "k", "r"))
		}, like("ada", "i", "p"), HeavyTask, 0.75, 0.85},
		{"another user's tasks of the image", func(s *Predictor) {
			meets(s, 12, heavy, like("bob", "i", "q"))
			meets(s, 50, faint, like("eve", "k", "r"))
		}, like("ada", "i", "p"), HeavyTask, 0.70, 0.85},
		{"the program, of a user who does all", func(s *Predictor) {
			meets(s, 20, heavy, like("ada", "i", "q"))
			meets(s, 20, faint, like("ada", "i", "r"))
			meets(s, 8, mid, like("ada", "i", "p"))
		}, like("ada", "i", "p"), MediumTask, 0.70, 0.85},
		{"nobody is named", func(s *Predictor) { meets(s, 12, heavy, like("", "", "")) }, like("", "", ""), HeavyTask, 0.45, 0.50},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := empty()
			row.seen(s)
			task := &model.Task{Request: model.Request{GPUs: 1}}
			row.of(&task.Request)
			m := s.Prior(task)
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
			task.Expected.Loads = []interference.Load{mid}
			if s.Prior(task).IsUnknown() {
				t.Error("a known load is in doubt")
			}
		})
	}
}

// TestMixOfSeveralGPUs checks that tasks on several GPUs have a separate prior.
func TestMixOfSeveralGPUs(t *testing.T) {
	s := empty()
	meets(s, 50, faint, like("ada", "", ""))
	several := &model.Task{Request: model.Request{GPUs: 2, User: "ada"}}
	if got := s.Prior(several); got != firstMixFew {
		t.Errorf("it may be %v", got)
	}
	s.countClass(several, heavy)
	one := &model.Task{Request: model.Request{GPUs: 1, User: "bob"}}
	before := s.Prior(one)
	meets(s, 50, heavy, func(r *model.Request) { r.User, r.GPUs = "ada", 2 })
	if got := s.Prior(one); got != before {
		t.Errorf("tasks on two GPUs made one on one %v, before %v", got, before)
	}
}

// TestClasses checks that the limit between two classes is the mean of their typical
// activities.
func TestClasses(t *testing.T) {
	for _, row := range []struct {
		smact float64
		want  Class
	}{{0, LightTask}, {0.38, LightTask}, {0.39, MediumTask}, {0.70, MediumTask}, {0.72, HeavyTask}, {1, HeavyTask}} {
		if got := classOf(interference.Load{SMACT: row.smact}); got != row.want {
			t.Errorf("%v is of class %d", row.smact, got)
		}
	}
}

// TestCrowdsAreBounded checks that the oldest groups are dropped.
func TestCrowdsAreBounded(t *testing.T) {
	s := empty()
	for i := range maxGroups + 10 {
		meets(s, 1, heavy, like(fmt.Sprint("user", i), "", ""))
	}
	if n := len(s.classCounts.Groups); n > maxGroups {
		t.Errorf("%d groups", n)
	}
	if got := s.Prior(&model.Task{Request: model.Request{GPUs: 1, User: fmt.Sprint("user", maxGroups+9)}}); got[HeavyTask] < 0.3 {
		t.Errorf("the last user's next task may be %v", got)
	}
	for i, c := range s.classCounts.Groups {
		if s.classCounts.index[groupKeyOf(c.Name)] != i {
			t.Fatalf("group %s is at %d, found at %d", c.Name, i, s.classCounts.index[groupKeyOf(c.Name)])
		}
	}
}

// TestTypicalOf checks that the activities beside an SM activity are the typical loads',
// and never above the bounds.
func TestTypicalOf(t *testing.T) {
	for _, l := range TypicalLoads {
		got := typicalOf(interference.Load{SMACT: l.SMACT, SMOCC: 1, DRAMA: 1})
		if math.Abs(got.SMOCC-l.SMOCC) > 0.01 || math.Abs(got.DRAMA-l.DRAMA) > 0.01 {
			t.Errorf("%+v for %+v", got, l)
		}
	}
	if got := typicalOf(interference.Load{SMACT: 0.8, SMOCC: 0.1, DRAMA: 0.05}); !slices.Equal([]float64{got.SMOCC, got.DRAMA}, []float64{0.1, 0.05}) {
		t.Errorf("above its bounds: %+v", got)
	}
}
