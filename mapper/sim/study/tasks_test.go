package study

import (
	"testing"

	"carma/configs/traces"
	"carma/mapper/model"
)

// TestPriorities: the mapper has a priority for each word of a trace.
func TestPriorities(t *testing.T) {
	for i, word := range traces.Priorities {
		if p, ok := priorityOf(word); !ok || p != model.Low+model.Priority(i) {
			t.Errorf("%s: %v, %v", word, p, ok)
		}
	}
	if p, ok := priorityOf(""); !ok || p != model.Normal {
		t.Errorf("no word: %v, %v", p, ok)
	}
	if _, ok := priorityOf("urgent"); ok {
		t.Error("urgent is accepted")
	}
}
