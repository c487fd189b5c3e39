package replay

import (
	"testing"
	"time"

	"carma/runner/api"
)

func TestExact(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0s", 1500 * time.Millisecond: "1.5s", 70 * time.Second: "1m10s", 25325 * time.Second: "7h02m05s"} {
		if got := exact(d); got != want {
			t.Errorf("%s is %s, want %s", d, got, want)
		}
	}
}

// TestSuspendedIsNotExecution checks, for a live replay, that the time of a suspension counts
// neither as execution nor as waiting.
func TestSuspendedIsNotExecution(t *testing.T) {
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	task := api.Task{Phase: "succeeded", Submitted: noon, Ended: noon.Add(4 * time.Hour), Attempts: []api.Attempt{
		{Launched: noon.Add(time.Hour), Started: noon.Add(time.Hour), Ended: noon.Add(4 * time.Hour), Outcome: "ok", Suspended: 2 * time.Hour},
	}}
	if l := recordOf(&task).Lifetimes(); l.Execution != time.Hour || l.Waiting != time.Hour || l.Away != 2*time.Hour || l.JCT != 4*time.Hour {
		t.Errorf("%+v", l)
	}
}
