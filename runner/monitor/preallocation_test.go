package monitor

import (
	"testing"
	"time"

	"carma/internal/units"
)

// TestPreallocates checks that a program that takes most of a card at once and keeps it is
// distinguished from a program that reaches the same amount slowly, or changes it later.
func TestPreallocates(t *testing.T) {
	const every, card = time.Second, 40 * units.GiB
	for _, row := range []struct {
		name string
		used []float64 // share of the card, one sample per second
		want bool
	}{
		{"nothing", nil, false},
		{"JAX", []float64{0.01, 0.75}, true},
		{"TensorFlow, in two steps", []float64{0.01, 0.4, 0.95}, true},
		{"seen after that", []float64{0.75}, true},
		{"little", []float64{0.01, 0.6}, false},
		{"it grows", []float64{0.01, 0.2, 0.4, 0.6, 0.75}, false},
		{"it grew from more", []float64{0.3, 0.3, 0.3, 0.75}, false},
		{"it changes later", []float64{0.01, 0.75, 0.75, 0.75, 0.76}, false},
	} {
		c, at := &Curve{}, units.Instant(time.Hour)
		for _, share := range row.used {
			c.Add(at, card.Scale(share))
			at = at.Add(every)
		}
		if got := c.Preallocates(card, every, at.Add(reservesStays)); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
		if c.Preallocates(card, every, at) {
			t.Errorf("%s: told at once", row.name)
		}
	}
	if (*Curve)(nil).Preallocates(card, every, 0) {
		t.Error("of an attempt that nobody has seen")
	}
}
