package study

import (
	"fmt"
	"testing"

	"carma/configs/servers"
	"carma/internal/units"
	"carma/mapper/sim"
)

// lost replays 20 traces under some rules and returns the GPU-seconds lost, the number of
// suspensions, and the number of failed tasks.
func lost(t *testing.T, policy string, truth sim.Truth, set ...string) (seconds, suspends, failed float64) {
	t.Helper()
	names := make([]string, 20)
	for i := range names {
		names[i] = fmt.Sprintf("generated-%d", 43001+i)
	}
	all, err := ReadTraces(names)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := Rules{Policies: policy, Estimator: "oracle", Set: set}.Rows()
	if err != nil {
		t.Fatal(err)
	}
	server, err := servers.Find(servers.Default)
	if err != nil {
		t.Fatal(err)
	}
	s := &Study{Traces: all, Server: server, Rows: rows, StartUp: StartUp, Distinct: true, Truth: truth, Suspending: sim.Suspending{Rate: 5e9, Pause: sim.SuspendPause, Host: 512 * units.GiB}}
	done, err := s.Run()
	if err != nil {
		t.Fatal(err)
	}
	outcomes, references := Across(done, rows[0].Label)
	of := func(metric string) float64 { return Measure(metric, outcomes, references) }
	return of("lost_gpu_s"), of("suspends"), of("failed")
}

// TestSuspendedNotStopped checks that, with wrong memory estimates, suspending tasks that
// exceed their grants loses at least 40 % less GPU time than running them again. Nothing
// was tuned on these traces.
func TestSuspendedNotStopped(t *testing.T) {
	for _, policy := range []string{"carma", "magm"} {
		truth := sim.Truth{Memory: 0.3}
		before, none, _ := lost(t, policy, truth)
		after, some, failed := lost(t, policy, truth, "suspend-overuse=true")
		if none != 0 || some < 5 || failed > 0 || before < 100 || after > 0.6*before {
			t.Errorf("%s: %.0f GPU-seconds lost, %.0f with %.0f suspensions; %.0f failed, %.0f suspensions without the option", policy, before, after, some, failed, none)
		}
	}
}
