package named

import (
	"testing"

	"carma/configs/models"
)

// Each name that is listed makes a network of its own.
func TestAll(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range All() {
		if _, err := Build(name, models.Overrides{}); err != nil || !Known(name) || seen[name] {
			t.Errorf("%s: %v, known: %t, before: %t", name, err, Known(name), seen[name])
		}
		seen[name] = true
	}
	if Known("Qwen/Qwen2.5-7C") || !Known("qwen/qwen2.5-7b") {
		t.Error("names are known whole, whatever their case")
	}
}
