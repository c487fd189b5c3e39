package words

import (
	"slices"
	"testing"

	"carma/internal/units"
	"carma/mapper/model"
)

// TestGrants checks that the log shows amounts of memory with units such as GiB, not in
// bytes (U12).
func TestGrants(t *testing.T) {
	got := Grants([]model.Grant{{GPU: "GPU-1", Memory: 4 * units.GiB}, {GPU: "GPU-2", Memory: 13 * units.GiB / 4}})
	if want := []string{"GPU-1=4.0 GiB", "GPU-2=3.2 GiB"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
