package streams

import (
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/clock"
	"carma/runner/record"
	"carma/runner/tasklog"
)

// TestHasAttempt: an attempt that a task has, or may have later, can be followed. Another is
// refused, and the refusal says which attempts there are.
func TestHasAttempt(t *testing.T) {
	task := func(phase model.Phase, attempts ...int) *record.Record {
		rec := &record.Record{Task: model.Task{Request: model.Request{ID: 7}, Phase: phase}}
		for _, n := range attempts {
			rec.Task.Attempts = append(rec.Task.Attempts, model.Attempt{N: n})
		}
		return rec
	}
	for _, row := range []struct {
		rec    *record.Record
		n      int
		follow bool
		want   string
	}{
		{task(model.Running, 1), 1, false, ""},
		{task(model.Failed, 1, 2), 0, false, ""},
		{task(model.Running, 1), 2, true, ""},
		{task(model.Failed, 1, 2), 3, true, "task 7 has no attempt 3: it has attempts 1 to 2"},
		{task(model.Running, 1), 2, false, "task 7 has no attempt 2: it has only attempt 1"},
		{task(model.Queued), 1, false, "task 7 has no attempt 1: it has not been started; leave --attempt out"},
	} {
		got := ""
		if err := hasAttempt(row.rec, row.n, row.follow); err != nil {
			got = err.Error()
		}
		if got != row.want {
			t.Errorf("attempt %d of a task that is %s: %q, want %q", row.n, row.rec.Task.Phase, got, row.want)
		}
	}
}

// TestRelaunchNote: followers read why a task runs again, and with what.
func TestRelaunchNote(t *testing.T) {
	f := New(Config{Clock: clock.NewFrom(func() time.Time { return time.Unix(1e9, 0) }, 1)})
	task := model.Task{Request: model.Request{GPUs: 1}, NextGrant: 2 * units.GiB, Attempts: []model.Attempt{{N: 1}}, Reason: model.Reason{Code: model.ReasonText, Text: "exit code 3"}}
	if got := f.relaunchNote(&task).Line; got != "attempt 1 has ended (exit code 3); it will run again with 2.0 GiB" {
		t.Error(got)
	}
	task.NextExclusive = true
	if got := f.relaunchNote(&task).Line; got != "attempt 1 has ended (exit code 3); it will run again on GPUs of its own" {
		t.Error(got)
	}
	task.GPUs = 0
	if got := f.relaunchNote(&task).Line; got != "attempt 1 has ended (exit code 3); it will run again when there is room" {
		t.Error(got)
	}
}

// TestStreamName: each stream of stored output has a name in the API.
func TestStreamName(t *testing.T) {
	for s, want := range map[tasklog.Stream]string{tasklog.Stdout: "stdout", tasklog.Stderr: "stderr", tasklog.Note: "carma"} {
		if got := StreamName(s); got != want {
			t.Errorf("%v is %q, want %q", s, got, want)
		}
	}
}
