package runner

import (
	"strings"
	"testing"

	"carma/runner/api"
	"carma/runner/record"
)

// TestKindAndProgram checks that tasks with different work are of different kinds, and that
// tasks that differ only in the batch size are of the same program.
func TestKindAndProgram(t *testing.T) {
	rec := func(batch int, command string, env ...string) *record.Record {
		return &record.Record{Submit: api.Submit{Image: "i", Command: strings.Fields(command), BatchSize: batch, GPUs: 1, Env: env}}
	}
	same := []*record.Record{rec(0, "a --batch-size 8"), rec(0, "a --batch-size 16"), rec(32, "a"), rec(0, "a", "BATCH_SIZE=4"), rec(0, "a", "BATCH_SIZE=4", "BATCH_SIZE=5")}
	kinds := map[string]bool{}
	for _, r := range same {
		kinds[kind(r)] = true
		if program(r) != program(same[0]) || program(r) == "" {
			t.Errorf("%+v is of another program", r.Submit)
		}
	}
	if len(kinds) != len(same) {
		t.Errorf("%d kinds of %d", len(kinds), len(same))
	}
	if p := program(rec(0, "a")); p != "" {
		t.Errorf("program %s without a batch size", p)
	}
	if program(rec(8, "b")) == program(same[0]) {
		t.Error("another command is the same program")
	}
	small := rec(0, "a", "MODEL=small")
	for _, alike := range []*record.Record{rec(0, "a", "MODEL=huge", "MODEL=small"), rec(0, "a", "SEED=3", "MODEL=small", "WANDB_API_KEY=x", "WANDB_NAME=r", "RUN_ID=7")} {
		if kind(alike) != kind(small) {
			t.Errorf("%v is another kind than %v", alike.Submit.Env, small.Submit.Env)
		}
	}
	for _, other := range []*record.Record{rec(0, "a", "MODEL=huge"), rec(0, "a"), rec(0, "a", "MODEL=small", "CARMA_SWEEP_DEPTH=9")} {
		if kind(other) == kind(small) {
			t.Errorf("%v is the same kind as %v", other.Submit.Env, small.Submit.Env)
		}
	}
	if want := "e867b62b405ae13e"; kind(rec(0, "a", "SEED=1")) != kind(rec(0, "a")) || kind(rec(0, "a")) != want {
		t.Errorf("without telling variables: %s, older programs had %s", kind(rec(0, "a")), want)
	}
	if n := batchSize(rec(7, "a --batch-size 9", "BS=5")); n != 7 {
		t.Errorf("batch size %d, want what was submitted", n)
	}
}
