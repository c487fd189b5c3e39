package record

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"carma/containers"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/journal"
	"carma/runner/monitor"
	"carma/runner/progress"
)

// of returns a record of a task in a phase.
func of(id model.TaskID, name string, phase model.Phase) *Record {
	return &Record{Name: name, UID: 1000, Submit: api.Submit{Image: "image"}, Task: model.Task{Request: model.Request{ID: id}, Phase: phase}}
}

func ids(recs []*Record) (all []model.TaskID) {
	for _, r := range recs {
		all = append(all, r.ID())
	}
	return all
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// TestStoreFinds checks numbers and names: the newest task has a name, a renamed one leaves
// its old one.
func TestStoreFinds(t *testing.T) {
	s := NewStore()
	s.Put(of(1, "train", model.Succeeded))
	s.Put(of(2, "train", model.Running))
	s.Put(of(3, "other", model.Queued))
	for ref, want := range map[string]model.TaskID{"1": 1, "train": 2, "other": 3, "4": 0, "none": 0} {
		got := model.TaskID(0)
		if r := s.Find(ref); r != nil {
			got = r.ID()
		}
		if got != want {
			t.Errorf("%s is task %d, want %d", ref, got, want)
		}
	}
	s.Put(of(3, "third", model.Queued))
	if s.Find("other") != nil || s.Find("third") == nil || s.UnfinishedNamed("third") != 3 || s.UnfinishedNamed("none") != 0 {
		t.Errorf("after a new name: %v, %v, %d", s.Find("other"), s.Find("third"), s.UnfinishedNamed("third"))
	}
	s.Put(of(2, "train", model.Failed))
	if got := s.UnfinishedNamed("train"); got != 0 {
		t.Errorf("the unfinished task of a name whose tasks have ended is %d", got)
	}
}

// TestStoreLists checks the lists and their order.
func TestStoreLists(t *testing.T) {
	s := NewStore()
	for _, id := range []model.TaskID{4, 1, 3, 2} {
		s.Put(of(id, "", model.Running))
	}
	s.Put(of(2, "", model.Succeeded))
	s.Put(of(4, "", model.Failed))
	all := func(*Record) bool { return true }
	if got := ids(s.Newest(0, 3, all)); !slices.Equal(got, []model.TaskID{4, 3, 2}) {
		t.Errorf("the newest are %v", got)
	}
	if got := ids(s.Newest(3, 9, func(r *Record) bool { return !r.Task.Phase.Finished() })); !slices.Equal(got, []model.TaskID{1}) {
		t.Errorf("the unfinished ones before 3 are %v", got)
	}
	if got := ids(s.LastDone(9)); !slices.Equal(got, []model.TaskID{4, 2}) {
		t.Errorf("the last that finished are %v", got)
	}
	s.Drop(4)
	if got := ids(s.LastDone(9)); !slices.Equal(got, []model.TaskID{2}) || s.Find("4") != nil || len(s.All()) != 3 {
		t.Errorf("after a removal: %v finished, %d in all", got, len(s.All()))
	}
}

// TestStoreForgets checks that only the latest finished tasks stay in memory, and all
// unfinished ones.
func TestStoreForgets(t *testing.T) {
	s := NewStore()
	s.Put(of(1, "long", model.Running))
	for id := range model.TaskID(KeepFinished + 10) {
		s.Put(of(id+2, "", model.Succeeded))
	}
	if !s.HasForgotten() || s.Find("11") != nil || s.Find("12") == nil || s.Find("long") == nil {
		t.Errorf("forgotten %v; 11: %v, 12: %v, long: %v", s.HasForgotten(), s.Find("11"), s.Find("12"), s.Find("long"))
	}
}

// TestStoreTells checks versions and channels: each reader learns of a change once.
func TestStoreTells(t *testing.T) {
	s := NewStore()
	s.Put(of(1, "", model.Queued))
	_, one := s.Get(1)
	newer, version, changed := s.Since(0)
	if len(newer) != 1 || closed(one) || closed(changed) {
		t.Fatalf("%d newer, closed %v and %v", len(newer), closed(one), closed(changed))
	}
	s.Put(of(2, "", model.Queued))
	if closed(one) || !closed(changed) {
		t.Errorf("another task has changed: %v for the first, %v for all", closed(one), closed(changed))
	}
	s.Put(of(1, "", model.Running))
	if newer, _, _ = s.Since(version); !closed(one) || len(newer) != 2 {
		t.Errorf("the task has changed: %v, %d newer", closed(one), len(newer))
	}
	if r, c := s.Get(9); r != nil || c != nil {
		t.Errorf("an unknown task: %v, %v", r, c)
	}
	_, gone := s.Get(2)
	if s.Drop(2); !closed(gone) {
		t.Error("the task is removed, and its reader waits")
	}
}

// TestStoreSums checks that a user's sums and a group's tasks count unfinished tasks only.
func TestStoreSums(t *testing.T) {
	s := NewStore()
	a, b := of(1, "", model.Queued), of(2, "", model.Running)
	a.Group, a.Submit.Priority = "sweep", "high"
	s.Put(a)
	s.Put(b)
	s.Put(b.WithTask(b.Task)) // the same again
	if u := s.Usage(1000); u.Tasks != 2 || u.High != 1 || u.Bytes != SizeOf(&a.Submit)+SizeOf(&b.Submit) || !s.OpenGroup("sweep") {
		t.Errorf("the sums are %+v, the group is open: %v", u, s.OpenGroup("sweep"))
	}
	done := a.Task
	done.Phase = model.Succeeded
	s.Put(a.WithTask(done))
	if u := s.Usage(1000); u.Tasks != 1 || u.High != 0 || s.OpenGroup("sweep") {
		t.Errorf("after the end of one: %+v, the group is open: %v", u, s.OpenGroup("sweep"))
	}
	if u := s.Usage(1001); u != (Usage{}) {
		t.Errorf("another user has %+v", u)
	}
}

// TestWithReturnsACopy checks that each With method returns a changed copy, and leaves
// the record as it was.
func TestWithReturnsACopy(t *testing.T) {
	base := func() *Record {
		r := of(1, "a", model.Running)
		r.Job = &Job{JobID: containers.JobID{UID: "u"}}
		r.Task.Attempts = []model.Attempt{{N: 1}}
		return r
	}
	for name, change := range map[string]func(*Record) *Record{
		"task":      func(r *Record) *Record { return r.WithTask(model.Task{Request: r.Task.Request, Phase: model.Failed}) },
		"curve":     func(r *Record) *Record { return r.WithCurve(1, &monitor.Curve{}) },
		"untouched": func(r *Record) *Record { return r.WithUntouched(1, true) },
		"end":       func(r *Record) *Record { return r.WithEnd(1, &AttemptEnd{Remark: "odd"}) },
		"energy":    func(r *Record) *Record { return r.WithEnergy(1, 12.345) },
		"stop":      func(r *Record) *Record { return r.WithStop(StopOrder{Grace: time.Second}) },
		"job":       func(r *Record) *Record { return r.WithJobOver("done") },
		"params":    func(r *Record) *Record { return r.WithParams(&progress.Parameters{}) },
	} {
		r := base()
		if n := change(r); n == r || reflect.DeepEqual(n, r) || !reflect.DeepEqual(r, base()) {
			t.Errorf("%s: changed %v, the original is as before: %v", name, !reflect.DeepEqual(n, r), reflect.DeepEqual(r, base()))
		}
	}
	for name, change := range map[string]func(*Record) *Record{
		"curve":     func(r *Record) *Record { return r.WithCurve(1, nil) },
		"untouched": func(r *Record) *Record { return r.WithUntouched(1, false) },
		"end":       func(r *Record) *Record { return r.WithEnd(1, nil) },
		"energy":    func(r *Record) *Record { return r.WithEnergy(1, 0) },
		"params":    func(r *Record) *Record { return r.WithParams(nil) },
	} {
		if r := base(); change(r) != r {
			t.Errorf("%s: nothing was observed, and there is a copy", name)
		}
	}
	if got := base().WithEnergy(1, 12.345).Energy[1]; got != 12.35 && got != 12.34 {
		t.Errorf("12.345 J are %v", got)
	}
}

// TestRow checks that a record comes back from its row of the journal as it was, without
// what is not stored.
func TestRow(t *testing.T) {
	r := of(7, "train", model.Failed).WithEnergy(1, 3).WithUntouched(1, true).WithEnd(1, &AttemptEnd{Remark: "odd"})
	r.User, r.Group, r.Hidden = "ann", "sweep", true
	row := r.Row()
	if row.ID != 7 || row.Name != "train" || row.User != "ann" || row.Group != "sweep" || row.Phase != "failed" || !row.Finished {
		t.Errorf("the row is %+v", row)
	}
	body, err := row.Make()
	if err != nil {
		t.Fatal(err)
	}
	row.Body = body
	got, err := Decode(row)
	if r.Hidden = false; err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("it comes back as %+v, %v", got, err)
	}
	if _, err := Decode(journal.TaskRow{ID: 7, Body: []byte("{")}); err == nil {
		t.Error("half a row is decoded")
	}
}

// TestContainerUser checks the user of the container for root's tasks, which may choose.
func TestContainerUser(t *testing.T) {
	for _, row := range []struct {
		uid         int
		asked, own  string
		wantU, want int
		ok          bool
	}{
		{1000, "", "", 1000, 100, true},
		{1000, "root", "root", 1000, 100, true}, // not for others to choose
		{0, "", "", 0, 0, true},
		{0, "root", "12", 0, 0, true},
		{0, "12:34", "", 12, 34, true},
		{0, "12", "", 12, 0, true},
		{0, "12:staff", "", 12, 0, true},
		{0, "", "www-data", 0, 0, false},
		{0, "-1", "", 0, 0, false},
	} {
		r := &Record{UID: row.uid, GID: 100 * min(row.uid, 1), ImageUser: row.own, Submit: api.Submit{User: row.asked}}
		if u, g, ok := r.ContainerUser(); u != row.wantU || g != row.want || ok != row.ok {
			t.Errorf("%+v: %d:%d, %v", row, u, g, ok)
		}
	}
}

// TestStopOrderLeft checks that a clock that was set back does not prolong the grace.
func TestStopOrderLeft(t *testing.T) {
	at := time.Unix(1000, 0)
	o := StopOrder{At: at, Grace: time.Minute}
	for after, want := range map[time.Duration]time.Duration{0: time.Minute, 20 * time.Second: 40 * time.Second, time.Hour: 0, -time.Hour: time.Minute} {
		if got := o.Left(at.Add(after)); got != want {
			t.Errorf("after %v: %v left, want %v", after, got, want)
		}
	}
}

// TestWithoutQuotes checks that the lines of a private task's output are left out.
func TestWithoutQuotes(t *testing.T) {
	e := &AttemptEnd{Remark: "odd", Witnesses: []containers.Witness{{Source: containers.SourceOutput, Text: "secret"}, {Source: "exit-code", Text: "code 1"}}}
	if got := e.WithoutQuotes(); got.Remark != "odd" || got.Witnesses[0].Text != "" || got.Witnesses[1].Text != "code 1" || e.Witnesses[0].Text != "secret" {
		t.Errorf("%+v of %+v", got, e)
	}
}
