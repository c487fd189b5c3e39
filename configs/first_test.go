package configs

import (
	"slices"
	"testing"
)

func TestFirstKeys(t *testing.T) {
	for _, name := range firstKeys {
		if !slices.Contains(Keys(), name) {
			t.Errorf("%s is not a setting", name)
		}
	}
	n := 0
	for _, s := range Settings(Config{}, nil) {
		if s.First {
			n++
		}
	}
	if n != len(firstKeys) || 3*n > len(keys) {
		t.Errorf("%d of %d settings come first, %d are listed; an operator reads a third of them at most", n, len(keys), len(firstKeys))
	}
}
