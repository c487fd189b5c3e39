package tasks

import (
	"strings"
	"testing"

	"carma/runner/api"
)

// TestSampleHead: the first line of a sample has the exit code, the outcome, the rule and the
// facts from which the outcome was derived.
func TestSampleHead(t *testing.T) {
	at := api.Attempt{N: 2, ExitCode: 1, Outcome: "gpu-oom", Witnesses: []api.Witness{
		{Source: "output", Says: "gpu-oom", Strength: "strong", Rule: "vllm-cache"},
		{Source: "gpu-memory", Says: "gpu-oom"}, {Source: "kernel"}, {Source: "output", Rule: "other"},
	}}
	if got, want := sampleHead(&at), "# code=1 class=gpu-oom source=report rule=vllm-cache facts=card-full,oom-killed"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	task := api.Task{ID: 7, Attempts: []api.Attempt{{N: 1, Outcome: "gpu-oom"}, {N: 2}}}
	if at, err := endedAttempt(&task, 0); err != nil || at.N != 1 {
		t.Errorf("%+v, %v", at, err)
	}
	if _, err := endedAttempt(&task, 2); err == nil || !strings.Contains(err.Error(), "no attempt 2 that has ended") {
		t.Errorf("of one that runs: %v", err)
	}
}

// TestWitnessText checks that the evidence for a failure is listed, and for a success only the
// note.
func TestWitnessText(t *testing.T) {
	at := api.Attempt{Outcome: "program", Remark: "the output says out of GPU memory, but peak 1.00 GiB", Witnesses: []api.Witness{
		{Source: "exit", Text: "exit code 1"}, {Source: "output", Says: "gpu-oom", Strength: "strong", Rule: "pytorch-oom"}, {Source: "gpu-memory", Says: "not-gpu-oom", Text: "peak 1.00 GiB"},
	}}
	want := `    note: the output says out of GPU memory, but peak 1.00 GiB
    exit: exit code 1
    output (gpu-oom, strong): a line that only its owner may read [pytorch-oom]
    gpu-memory (against gpu-oom): peak 1.00 GiB
`
	if got := witnessText(&at); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	at.Outcome = "ok"
	if got := witnessText(&at); strings.Count(got, "\n") != 1 {
		t.Errorf("of a success: %s", got)
	}
}
