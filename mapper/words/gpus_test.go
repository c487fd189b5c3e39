package words

import (
	"testing"

	"carma/mapper/model"
)

// TestGPUs checks the order of the names, and that an unknown GPU has its UUID.
func TestGPUs(t *testing.T) {
	index := func(id model.GPUID) int { return map[model.GPUID]int{"a": 2, "b": 0, "gone": -1}[id] }
	for want, ids := range map[string][]model.GPUID{
		"GPU 2": {"a"}, "GPUs 0, 2": {"a", "b"}, "GPUs gone, 2": {"a", "gone"}, "GPUs ": nil,
	} {
		if got := GPUs(ids, index); got != want {
			t.Errorf("%q: %q", want, got)
		}
	}
}
