package runner

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"carma/containers/containerstest"
	estimators "carma/estimator/booking"
	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/gpu"
	"carma/runner/request"
	"carma/runner/verify"
)

// measuredRig returns a daemon with carma's own estimator. Its tasks end on command, and its
// time runs a thousand times as fast.
func measuredRig(t *testing.T, end chan struct{}, change ...func(*rig)) *rig {
	t.Helper()
	return newRig(t, append(change, func(g *rig) {
		p, err := estimators.NewPredictor("")
		if err != nil {
			t.Fatal(err)
		}
		g.estimator = p
		g.opt.Mapper.Learn = true
		g.opt.Speed, g.opt.SetSpeed = 1, func(float64) {}
		g.script("train", func(ctx context.Context, _ *containerstest.Process) int {
			select {
			case <-end:
				return 0
			case <-ctx.Done():
				return 143
			}
		})
	})...)
}

// trains runs a task to its end with a factor of its plain estimate as its peak, and
// returns its allocation.
func (g *rig) trains(who request.Caller, s api.Submit, factor float64, end chan struct{}) api.Task {
	g.t.Helper()
	s.Image = "train"
	ref := g.runAs(who, s)
	task := g.running(ref)
	used := units.Bytes(task.Estimate.Plain).Scale(factor)
	uuid := task.Attempts[0].GPUs[0].UUID
	g.cards.set(gpu.Sample{UUID: uuid, Used: used, Processes: []gpu.Process{{Task: model.TaskID(task.ID), Attempt: 1, Used: used}}})
	g.eventually("its memory is seen", func() bool {
		peak, _ := g.monitor.Observed(model.TaskID(task.ID), 1)
		return peak == used && g.Clock.Time().Sub(task.Attempts[0].Started) > 40*time.Second
	})
	end <- struct{}{}
	g.finished(ref)
	g.cards.set(gpu.Sample{UUID: uuid})
	task, err := g.query.Task(g.as(who), ref)
	if err != nil {
		g.t.Fatal(err)
	}
	return task
}

// TestSecondTaskIsBetter: the memory use of the first task of a model corrects the estimate of
// the second, even after kill -9, and that inspect shows it. The scores show users the errors
// of their own tasks, and administrators the errors of all tasks.
func TestSecondTaskIsBetter(t *testing.T) {
	end := make(chan struct{})
	g := measuredRig(t, end, func(g *rig) { g.opt.AdminGroup = "lab" })
	if err := g.SetSpeed(1000); err != nil {
		t.Fatal(err)
	}
	first := g.trains(ann, api.Submit{EstModel: "densenet121", BatchSize: 24, Command: []string{"a"}}, 1.2, end)
	off := func(task api.Task) float64 {
		return math.Abs(float64(task.Estimate.Point)/(1.2*float64(task.Estimate.Plain)) - 1)
	}
	if first.Estimate.Point != first.Estimate.Plain || math.Abs(off(first)-1./6) > 1e-3 {
		t.Fatalf("the first: %+v", first.Estimate)
	}
	second := g.trains(bob, api.Submit{EstModel: "densenet121", BatchSize: 48, Command: []string{"b"}}, 1.2, end)
	if off(second) > 0.1 || 5*second.Estimate.Memory < 6*second.Estimate.Plain || !strings.Contains(second.Estimate.Detail, "from 1 run of this model here") {
		t.Errorf("the second is off by %.3f: %+v", off(second), second.Estimate)
	}

	next := api.Submission{Tasks: []api.Submit{{Image: "train", EstModel: "densenet121", BatchSize: 36, Command: []string{"c"}}}}
	want, err := g.admission.Preview(g.as(ann), ann, next)
	if err != nil || off(api.Task{Estimate: want.Tasks[0].Estimate}) > 0.05 {
		t.Errorf("the third: %+v, %v", want, err)
	}
	if got := g.replayed().Measured(); len(got) != 2 || got[0].Peak != units.Bytes(first.Attempts[0].Peak) {
		t.Errorf("after kill -9: %+v", got)
	}
	g.restart()
	got, err := g.admission.Preview(g.as(ann), ann, next)
	if err != nil || got.Tasks[0].Estimate != want.Tasks[0].Estimate {
		t.Errorf("after a restart %+v, %v; before %+v", got.Tasks, err, want.Tasks)
	}

	for who, tasks := range map[*request.Caller]int{&ann: 1, &bob: 1, &oper: 2} {
		s, err := g.query.Scores(g.ctx(), *who)
		if err != nil || len(s.Families) != 1 || s.Everybody != (tasks == 2) {
			t.Fatalf("%s: %+v, %v", who.Name, s, err)
		}
		f := s.Families[0]
		if f.Tasks != tasks || f.Family != "carma cnn, a100-2025-09" || f.PlainTasks != tasks || math.Abs(f.PlainMedian-1./6) > 1e-3 {
			t.Errorf("%s: %+v", who.Name, f)
		}
		if who == &bob && (f.Median > 0.1 || f.Above != 0 || f.Overhead <= 0) {
			t.Errorf("%+v", f)
		}
	}
	if _, err := g.api.Scores(g.ctx()); err != nil {
		t.Errorf("by the API: %v", err)
	}
}

// TestUnscored: failed tasks are in no score.
func TestUnscored(t *testing.T) {
	g := newRig(t)
	g.script("bad", printing(1, "no"))
	g.finished(g.runAs(ann, api.Submit{Image: "bad", EstModel: "resnet50"}))
	s, err := g.query.Scores(g.ctx(), ann)
	if err != nil || len(s.Families) > 0 || s.Unscored != 1 {
		t.Errorf("%+v, %v", s, err)
	}
	if s, err := g.query.Scores(g.ctx(), bob); err != nil || s.Unscored != 0 {
		t.Errorf("somebody else sees %+v, %v", s, err)
	}
}

// replayed returns the state that a daemon loads after kill -9. It is computed from the events
// of the journal, because no snapshot was stored at the end.
func (g *rig) replayed() *mapper.State {
	g.t.Helper()
	state := mapper.New(g.opt.Mapper)
	for p, err := range verify.History(&g.Journal.Reader, 0) {
		if err != nil {
			g.t.Fatal(err)
		}
		state.Step(p.Event)
	}
	return state
}
