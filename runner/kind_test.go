package runner

import (
	"slices"
	"strings"
	"testing"

	"carma/runner/api"
)

func TestCutBatch(t *testing.T) {
	for line, want := range map[string]struct {
		batch int
		rest  string
	}{
		"train.py --batch-size 64 --lr 0.1":                    {64, "train.py --lr 0.1"},
		"train.py --batch_size=64":                             {64, "train.py"},
		"train.py -b 32 x":                                     {32, "train.py x"},
		"train.py -b32":                                        {32, "train.py"},
		"train.py --bs 8":                                      {8, "train.py"},
		"train.py --per_device_train_batch_size 4":             {4, "train.py"},
		"train.py data=x train.batch_size=128":                 {128, "train.py data=x"},
		"train.py ++loader.batch_size=16":                      {16, "train.py"},
		"train.py --batch-size=0":                              {0, "train.py --batch-size=0"},
		"train.py --batch-size many":                           {0, "train.py --batch-size many"},
		"train.py --batch-size":                                {0, "train.py --batch-size"},
		"train.py --eval-batch-size 64":                        {0, "train.py --eval-batch-size 64"},
		"train.py --batches 64":                                {0, "train.py --batches 64"},
		"train.py --batch-size 99999999999":                    {0, "train.py --batch-size 99999999999"},
		"":                                                     {0, ""},
		"train.py --batch-size 64 --per_device_batch_size 999": {64, "train.py --per_device_batch_size 999"},
	} {
		batch, rest := cutBatch(strings.Fields(line))
		if batch != want.batch || strings.Join(rest, " ") != want.rest {
			t.Errorf("%q: %d, %q", line, batch, rest)
		}
	}
	batch, rest := cutBatch([]string{"sh", "-c", "cd /x && python train.py --batch-size 64 > log"})
	if want := []string{"sh", "-c", "cd /x && python train.py > log"}; batch != 64 || !slices.Equal(rest, want) {
		t.Errorf("shell: %d, %q", batch, rest)
	}
}

// TestKindAndProgram: tasks with other work are of another kind. Tasks that
// differ only in the batch size are of one program.
func TestKindAndProgram(t *testing.T) {
	rec := func(batch int, command string, env ...string) *Record {
		return &Record{Submit: api.Submit{Image: "i", Command: strings.Fields(command), BatchSize: batch, GPUs: 1, Env: env}}
	}
	same := []*Record{rec(0, "a --batch-size 8"), rec(0, "a --batch-size 16"), rec(32, "a"), rec(0, "a", "BATCH_SIZE=4"), rec(0, "a", "BATCH_SIZE=4", "BATCH_SIZE=5")}
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
	for _, alike := range []*Record{rec(0, "a", "MODEL=huge", "MODEL=small"), rec(0, "a", "SEED=3", "MODEL=small", "WANDB_API_KEY=x", "WANDB_NAME=r", "RUN_ID=7")} {
		if kind(alike) != kind(small) {
			t.Errorf("%v is another kind than %v", alike.Submit.Env, small.Submit.Env)
		}
	}
	for _, other := range []*Record{rec(0, "a", "MODEL=huge"), rec(0, "a"), rec(0, "a", "MODEL=small", "CARMA_SWEEP_DEPTH=9")} {
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
