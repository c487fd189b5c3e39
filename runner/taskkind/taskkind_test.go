package taskkind

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
		kinds[Kind(r)] = true
		if Program(r) != Program(same[0]) || Program(r) == "" {
			t.Errorf("%+v is of another program", r.Submit)
		}
	}
	if len(kinds) != len(same) {
		t.Errorf("%d kinds of %d", len(kinds), len(same))
	}
	if p := Program(rec(0, "a")); p != "" {
		t.Errorf("program %s without a batch size", p)
	}
	if Program(rec(8, "b")) == Program(same[0]) {
		t.Error("another command is the same program")
	}
	small := rec(0, "a", "MODEL=small")
	for _, alike := range []*record.Record{rec(0, "a", "MODEL=huge", "MODEL=small"), rec(0, "a", "SEED=3", "MODEL=small", "WANDB_API_KEY=x", "WANDB_NAME=r", "RUN_ID=7")} {
		if Kind(alike) != Kind(small) {
			t.Errorf("%v is another kind than %v", alike.Submit.Env, small.Submit.Env)
		}
	}
	for _, other := range []*record.Record{rec(0, "a", "MODEL=huge"), rec(0, "a"), rec(0, "a", "MODEL=small", "CARMA_SWEEP_DEPTH=9")} {
		if Kind(other) == Kind(small) {
			t.Errorf("%v is the same kind as %v", other.Submit.Env, small.Submit.Env)
		}
	}
	if want := "e867b62b405ae13e"; Kind(rec(0, "a", "SEED=1")) != Kind(rec(0, "a")) || Kind(rec(0, "a")) != want {
		t.Errorf("without telling variables: %s, older programs had %s", Kind(rec(0, "a")), want)
	}
	if n := BatchSize(rec(7, "a --batch-size 9", "BS=5")); n != 7 {
		t.Errorf("batch size %d, want what was submitted", n)
	}
}

// TestBareKind checks that tasks without an image are of the same kind if environment, folder and command
// are equal.
func TestBareKind(t *testing.T) {
	of := func(s api.Submit) string {
		s.GPUs, s.Command = 1, []string{"python", "train.py"}
		return Kind(&record.Record{Submit: s})
	}
	kinds := map[string]bool{}
	all := []api.Submit{{Host: true}, {Host: true, ContainerOptions: api.ContainerOptions{WorkDir: "/a"}}, {Conda: "/c", ContainerOptions: api.ContainerOptions{WorkDir: "/a"}}, {Conda: "/d", ContainerOptions: api.ContainerOptions{WorkDir: "/a"}}, {Venv: "/c", ContainerOptions: api.ContainerOptions{WorkDir: "/a"}}, {Image: "host", ContainerOptions: api.ContainerOptions{WorkDir: "/a"}}}
	for _, s := range all {
		kinds[of(s)] = true
	}
	if len(kinds) != len(all) || of(all[2]) != of(api.Submit{Conda: "/c", ContainerOptions: api.ContainerOptions{WorkDir: "/a"}}) {
		t.Errorf("%d kinds of %d", len(kinds), len(all))
	}
	if of(api.Submit{Image: "i", ContainerOptions: api.ContainerOptions{WorkDir: "/a"}}) != of(api.Submit{Image: "i", ContainerOptions: api.ContainerOptions{WorkDir: "/b"}}) {
		t.Error("with an image the working folder tells nothing")
	}
}
