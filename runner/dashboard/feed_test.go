package dashboard

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"carma/containers/containerstest"
	"carma/mapper/model"
	"carma/runner/access"
	"carma/runner/audit"
	"carma/runner/loop/looptest"
	"carma/runner/problems"
	"carma/runner/query"
	"carma/runner/record"
	"carma/runner/waitreason"

	"github.com/rs/zerolog"
)

// TestChanges checks that a viewer gets a whole snapshot, then only what has changed, and that a
// snapshot without a change is not shown. Of too many tasks, the oldest are shown.
func TestChanges(t *testing.T) {
	l := looptest.New(t)
	authz := access.New(access.Config{
		Audit: audit.New(t.TempDir()), Driver: containerstest.NewFake(), Now: time.Now, Log: zerolog.Nop(),
		Settings: func() access.Settings { return access.Settings{} },
	})
	t.Cleanup(func() { _ = authz.Close() })
	for id := range model.TaskID(3) {
		l.Submit(&record.Record{Name: fmt.Sprint("task-", id+1), User: "ann", Task: model.Task{Request: model.Request{ID: id + 1}}})
	}
	t.Cleanup(l.Run())
	f := New(Config{
		Tasks:   query.New(query.Config{Loop: l.Loop, Find: &record.Finder{Records: l.Records, Journal: l.Journal}, Authz: authz, Clock: l.Clock, Reasons: new(waitreason.Cache)}),
		Server:  query.NewServer(query.ServerConfig{Loop: l.Loop, Records: l.Records, Authz: authz, Clock: l.Clock, Trouble: problems.New(zerolog.Nop()), Draining: func() bool { return false }}),
		Records: l.Records, Authz: authz, Clock: l.Clock, Work: t.Context(),
	})
	f.viewers = 1
	as := f.viewOf(t.Context())
	show := func() bool {
		t.Helper()
		s, err := f.snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return f.set(t.Context(), s, false)
	}
	if event, _, _ := f.next(0, as); event != nil {
		t.Errorf("before the first snapshot: %s", event)
	}
	if !show() || show() {
		t.Error("a snapshot is shown once")
	}
	whole, seq, changed := f.next(0, as)
	if text := string(whole); seq != 1 || !strings.Contains(text, `"whole":true`) || !strings.Contains(text, `"queue":[1,2,3]`) || !strings.Contains(text, "task-3") {
		t.Errorf("%d: %s", seq, text)
	}
	f.SetMost(2)
	if !show() {
		t.Error("a task less is no change")
	}
	select {
	case <-changed:
	default:
		t.Error("the viewer is not woken")
	}
	change, seq, _ := f.next(1, as)
	if text := string(change); seq != 2 || strings.Contains(text, "whole") || strings.Contains(text, "task-") || !strings.Contains(text, `"gone":[3],"queue":[1,2]`) || !strings.Contains(text, `"left_out":1`) {
		t.Errorf("%d: %s", seq, text)
	}
	if late, _, _ := f.next(7, as); !strings.Contains(string(late), `"whole":true`) {
		t.Errorf("a viewer who missed snapshots gets %s", late)
	}
}
