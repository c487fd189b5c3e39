package main

import (
	"testing"
	"time"

	"carma/runner/api"
)

// TestCourse: what became of an attempt, and why the task ran again after it,
// each said once (U7).
func TestCourse(t *testing.T) {
	began := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		name string
		at   api.Attempt
		want string
	}{
		{"a GPU OOM", api.Attempt{Outcome: "gpu-oom", Message: "CUDA out of memory", Reason: "GPU out of memory: it wanted 6.0 GiB and had 4.0 GiB reserved"},
			"gpu-oom after 1m00s (CUDA out of memory); GPU out of memory: it wanted 6.0 GiB and had 4.0 GiB reserved"},
		{"without a message", api.Attempt{Outcome: "gpu-oom", Reason: "GPU out of memory: it ran out with 4.0 GiB reserved"},
			"gpu-oom after 1m00s; GPU out of memory: it ran out with 4.0 GiB reserved"},
		{"stopped by carma", api.Attempt{Outcome: "stopped", Message: "stopped by carma", Reason: "time slot of 1h0m0s used, others wait"},
			"stopped after 1m00s; time slot of 1h0m0s used, others wait"},
		{"stopped by a user", api.Attempt{Outcome: "stopped", Message: "stopped by carma"}, "stopped after 1m00s (stopped by carma)"},
		{"said once", api.Attempt{Outcome: "program", Message: "exit code 3", Reason: "retry 1 of 2: exit code 3"}, "program after 1m00s (exit code 3)"},
	} {
		row.at.Started, row.at.Ended = began, began.Add(time.Minute)
		if got := course(&row.at, began); got != row.want {
			t.Errorf("%s: %q\nwant %q", row.name, got, row.want)
		}
	}
	tasks := &api.Task{Attempts: []api.Attempt{{Outcome: "stopped", ReasonCode: "slot-used"}, {N: 2}}}
	if got := relaunches(tasks); got != "attempt 2, after slot-used" {
		t.Errorf("ps says %q", got)
	}
}
