package settings

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

// TestGoneSettings checks that a removed setting does not stop the daemon if the file has the
// value that always applies now.
func TestGoneSettings(t *testing.T) {
	values, _, err := parse("f.yaml", []byte("estimator: carma\npolicy: lug\n"))
	if err != nil || len(values) != 1 || values["policy"] != "lug" {
		t.Errorf("%v, %v", values, err)
	}
}
