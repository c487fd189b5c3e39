package admission

import (
	"strings"
	"testing"
	"time"

	"carma/containers/containerstest"
	"carma/estimator"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/access"
	"carma/runner/api"
	"carma/runner/audit"
	"carma/runner/loop"
	"carma/runner/loop/looptest"
	"carma/runner/record"
	"carma/runner/request"

	"github.com/rs/zerolog"
)

var ann = request.Caller{UID: 1001, Name: "ann"}

// setup returns a controller whose loop knows a GPU of 1 GiB, and task 1 of ann, which does not fit.
func setup(t *testing.T, settings Settings) (*Controller, *looptest.Loop) {
	t.Helper()
	l := looptest.New(t)
	authz := access.New(access.Config{
		Account: -1, Audit: audit.New(t.TempDir()), Driver: containerstest.NewFake(), Now: time.Now, Log: zerolog.Nop(),
		Settings: func() access.Settings { return access.Settings{} },
	})
	t.Cleanup(func() { _ = authz.Close() })
	l.Submit(&record.Record{Name: "train", User: "ann", UID: ann.UID, Task: model.Task{Request: model.Request{ID: 1}}})
	found := loop.Fact(model.GPUsFound{At: l.Clock.Now(), GPUs: []model.GPUInfo{{ID: "GPU-a", Capacity: units.GiB}}})
	if _, err := l.Apply([]*loop.Change{found}); err != nil {
		t.Fatal(err)
	}
	return New(Config{
		Loop: l.Loop, Records: l.Records, Find: &record.Finder{Records: l.Records, Journal: l.Journal}, Clock: l.Clock,
		Numbers: NewNumbers(1), Authz: authz, Settings: func() Settings { return settings },
	}), l
}

// submission returns prepared tasks of ann, which get 100 MiB of a GPU each.
func submission(list ...api.Submit) *submissionBatch {
	in := &submissionBatch{who: ann}
	for _, s := range list {
		s.GPUs, s.Image = 1, "i"
		in.tasks = append(in.tasks, &candidate{
			rec: &record.Record{Submit: s, Name: s.Name, User: ann.Name, UID: ann.UID},
			est: estimator.Estimate{Memory: 100 * units.MiB},
		})
	}
	return in
}

// TestDependencyOnWhatJustEnded checks that the dependencies of a submission are checked after
// an event that precedes it in the same round of the loop.
func TestDependencyOnWhatJustEnded(t *testing.T) {
	a, l := setup(t, Settings{})
	later := api.Submit{After: []api.Dependency{{Task: "1"}}}
	var recs []*record.Record
	change := a.addition(api.Submission{Tasks: []api.Submit{later}}, submission(later), nil, &recs)
	events, refused := change.Events, error(nil)
	change.Events = func(now units.Instant) (list []model.Event, recs []*record.Record, err error) {
		list, recs, refused = events(now)
		return list, recs, refused
	}
	if _, err := l.Apply([]*loop.Change{loop.Fact(model.Cancel{At: l.Clock.Now(), Task: 1, Reason: "gone"}), change}); err != nil {
		t.Fatal(err)
	}
	if refused == nil || !strings.Contains(refused.Error(), "--after 1: task 1 was cancelled, so nothing would ever run") {
		t.Errorf("the submission was answered with %v", refused)
	}
	if a.cfg.Numbers.Next() != 2 {
		t.Error("a refused submission took a number")
	}
}

// TestNames checks that a name is given once in a batch of the loop, and may be given again in
// the next batch if its task was not added.
func TestNames(t *testing.T) {
	a, l := setup(t, Settings{})
	plan := func(name string) error {
		var recs []*record.Record
		s := api.Submit{Name: name}
		_, _, err := a.addition(api.Submission{Tasks: []api.Submit{s}}, submission(s), nil, &recs).Events(l.Clock.Now())
		return err
	}
	if err := plan("x"); err != nil {
		t.Fatal(err)
	}
	if err := plan("x"); err == nil || !strings.Contains(err.Error(), "another task is being called x") {
		t.Errorf("the same name: %v", err)
	}
	if err := plan("train"); err == nil || !strings.Contains(err.Error(), "task 1 is called train already") {
		t.Errorf("the name of an unfinished task: %v", err)
	}
	a.BeginBatch()
	if err := plan("x"); err != nil {
		t.Errorf("in the next batch: %v", err)
	}
	if a.cfg.Numbers.Next() != 4 {
		t.Errorf("the next number is %d", a.cfg.Numbers.Next())
	}
}

// TestRoom checks that a user cannot have more unfinished tasks than the settings allow.
func TestRoom(t *testing.T) {
	a, _ := setup(t, Settings{PerUser: PerUser{Tasks: 2}})
	if err := a.room(submission(api.Submit{})); err != nil {
		t.Error(err)
	}
	if err := a.room(submission(api.Submit{}, api.Submit{})); err == nil || !strings.Contains(err.Error(), "you would have 3 unfinished tasks") {
		t.Errorf("a third task: %v", err)
	}
}
