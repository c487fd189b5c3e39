package tasks

import (
	"strings"
	"testing"
	"time"

	"carma/runner/api"
)

// TestCourse checks that the outcome of an attempt, and the reason why the task ran again, are
// each printed once (U7).
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
		if got := course(&row.at, began, false); got != row.want {
			t.Errorf("%s: %q\nwant %q", row.name, got, row.want)
		}
	}
	for want, before := range map[string]api.Attempt{
		"attempt 2, after slot-used":             {Outcome: "stopped", ReasonCode: "slot-used"},
		"attempt 2, after requeue":               {Outcome: "stopped", ReasonCode: "recalled"},
		"attempt 2, after gpu-oom":               {Outcome: "gpu-oom"},
		"attempt 2, after a fault of the server": {Outcome: "infrastructure"},
	} {
		if got := relaunches(&api.Task{Attempts: []api.Attempt{before, {N: 2}}}); got != want {
			t.Errorf("ps says %q, want %q", got, want)
		}
	}
}

// TestCommandText checks that carma why prints a line about the checkpoints in the command
// line.
func TestCommandText(t *testing.T) {
	for want, s := range map[string]*api.Says{
		"": {Unbuffered: true},
		"command line: saves checkpoints by --output_dir=/out, resumes by --resume last\n": {Checkpoints: "--output_dir=/out", Resume: "--resume last"},
		"command line: takes its GPUs by torchrun --nproc_per_node 4\n":                    {GPUs: "torchrun --nproc_per_node 4"},
	} {
		if got := commandText(s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := WhyText(&api.Why{}, &api.Task{ID: 7, Name: "a", Phase: "failed"}); strings.Contains(got, "command line") {
		t.Errorf("%q", got)
	}
}

// TestUndeliveredText: a message that was not delivered is a line of carma why, without control
// characters.
func TestUndeliveredText(t *testing.T) {
	text := WhyText(&api.Why{}, &api.Task{ID: 7, Name: "a", Phase: "failed", Undelivered: []string{"phone: its message \"failed\" waits: the receiver answered 502\x1b[2J"}})
	if !strings.Contains(text, "\nmessage: phone: its message \"failed\" waits: the receiver answered 502 [2J (carma notify)\n") {
		t.Errorf("%q", text)
	}
}

// TestAccountText checks that priority, quota and fair share are printed if they affect the
// task (U6).
func TestAccountText(t *testing.T) {
	for want, w := range map[string]*api.Why{
		"":                   {Priority: "normal"},
		"priority: high\n":   {Priority: "high"},
		"priority: normal\n": {Priority: "normal", Position: 2, Account: &api.Account{User: "ann", Tasks: 3}},
		"priority: low\nquota: ann has 3 of 4 tasks, 5 of 8 GPUs, 2.0 GiB of 80.0 GiB\nfair share: ann has used 1.5 GPU-hours lately; 2 users who wait go first\n": {
			Priority: "low", Account: &api.Account{User: "ann", Tasks: 3, QuotaTasks: 4, GPUs: 5, QuotaGPUs: 8, Memory: 2 << 30, QuotaMemory: 80 << 30, Fair: true, Used: 5400, Ahead: 2},
		},
		"fair share: bob has used 0.0 GPU-hours lately; nobody who waits goes first\n": {Account: &api.Account{User: "bob", Fair: true}},
	} {
		if got := accountText(w); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestStartText: an expected start is a range, or the known part of it.
func TestStartText(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for want, s := range map[string]*api.Start{
		"":                                    nil,
		"expected start: now\n":               {Earliest: now, Latest: now},
		"expected start: in 10m\n":            {Earliest: now.Add(10 * time.Minute), Latest: now.Add(10*time.Minute + 20*time.Second)},
		"expected start: in 10m to 1h00m\n":   {Earliest: now.Add(10 * time.Minute), Latest: now.Add(time.Hour)},
		"expected start: in 3h00m or later\n": {Earliest: now.Add(3 * time.Hour)},
	} {
		if got := startText(&api.Why{Now: now, Start: s}); got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
}

// TestShare: an attempt's resources are listed without gaps, even if nothing is
// allocated.
func TestShare(t *testing.T) {
	gpu := []api.GPURef{{Index: 3}}
	for want, at := range map[string]api.Attempt{
		"without a GPU": {},
		"without a GPU, host memory at its peak 2.0 GiB":                                         {Host: api.HostShare{Peak: 2 << 30}},
		"without a GPU, host memory 2.0 GiB (at most 4.0 GiB), its peak 1.0 GiB, processors 0.5": {Host: api.HostShare{Memory: 2 << 30, Limit: 4 << 30, Peak: 1 << 30, CPUs: 0.5}},
		"on GPU 3, whole": {GPUs: gpu},
		"on GPU 3, 8.0 GiB, host memory at its peak 1.0 GiB": {GPUs: gpu, Grant: 8 << 30, Host: api.HostShare{Peak: 1 << 30}},
	} {
		if got := share(&at); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
