package step_test

import (
	"strings"
	"testing"

	"carma/configs/models"
	"carma/estimator/networks/named"
	"carma/estimator/step"
)

// TestSequenceParallel: the memory of samples is divided, weights are not. Samples are
// distributed over groups of GPUs, and shards of weights over all GPUs.
func TestSequenceParallel(t *testing.T) {
	of := func(o models.Overrides) step.Result {
		t.Helper()
		o.Precision, o.Optimizer, o.Sequence = models.BF16, models.AdamW, max(o.Sequence, 4096)
		c, err := named.Build("meta-llama/Llama-3.2-1B", o)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		got, err := step.Simulate(c, &step.Environment{Name: "plain"})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	same := func(what string, got, want step.Result) {
		t.Helper()
		for part, n := range want.Parts {
			if d := got.Parts[part] - n; d < -1<<20 || d > 1<<20 {
				t.Errorf("%s: %v is %d bytes, want %d", what, part, got.Parts[part], n)
			}
		}
	}
	one := of(models.Overrides{Batch: 1})
	// Four samples over four GPUs is as much for each GPU as one sample on one.
	same("4 samples over 4", of(models.Overrides{Batch: 4, SequenceParallel: 4}), one)
	same("4 samples over 4, chunked", of(models.Overrides{Batch: 4, SequenceParallel: 4, Loss: "chunked"}), of(models.Overrides{Batch: 1, Loss: "chunked"}))
	same("4 samples over 4, eager", of(models.Overrides{Batch: 4, SequenceParallel: 4, Attention: "eager"}), of(models.Overrides{Batch: 1, Attention: "eager"}))
	// So is one sample that is four times as long.
	same("a long sample over 4", of(models.Overrides{Batch: 1, Sequence: 4 * 4096, SequenceParallel: 4}), one)
	// Two groups of four: two samples, one for each group.
	group := of(models.Overrides{Batch: 8, GPUs: 8, SequenceParallel: 4, Parallel: models.FSDP})
	same("two groups, sharded over all", group, of(models.Overrides{Batch: 8, GPUs: 8, Parallel: models.FSDP}))

	for text, o := range map[string]models.Overrides{
		"over 4 GPUs, and the training has 6": {GPUs: 6, SequenceParallel: 4, Parallel: models.FSDP},
		"and the training has 8":              {GPUs: 8, SequenceParallel: 4},
		"not known together with parallel tp": {SequenceParallel: 4, Parallel: "tp:4"},
		"is no number of GPUs":                {SequenceParallel: 1 << 20},
	} {
		c, err := named.Build("meta-llama/Llama-3.2-1B", o)
		if err == nil {
			err = c.Validate()
		}
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%+v: %v, want %s", o, err, text)
		}
	}
	c, err := named.Build("resnet50", models.Overrides{SequenceParallel: 2})
	if err == nil {
		_, err = step.Simulate(c, &step.Environment{Name: "plain"})
	}
	if err == nil || !strings.Contains(err.Error(), "this network has none") {
		t.Errorf("a network without tokens: %v", err)
	}
}
