package energy

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestShares(t *testing.T) {
	for _, c := range []struct {
		name        string
		watts, idle float64
		activity    []float64
		want        []float64
	}{
		{"nobody", 60, 60, nil, nil},
		{"one has all", 300, 60, []float64{0.2}, []float64{300}},
		{"idle equally, the rest by activity", 300, 60, []float64{0.6, 0.2}, []float64{210, 90}},
		{"one only loads its data", 300, 60, []float64{0.6, 0}, []float64{270, 30}},
		{"all load their data", 61, 60, []float64{0, 0}, []float64{30.5, 30.5}},
		{"idle not known", 300, 0, []float64{0.6, 0.2}, []float64{225, 75}},
		{"less than idle", 50, 60, []float64{0.6, 0.2}, []float64{25, 25}},
	} {
		got := Shares(nil, c.watts, c.idle, c.activity)
		if !slices.EqualFunc(got, c.want, func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestSharesSum checks that no energy is lost, no share is negative, and more activity
// never gives a smaller share.
func TestSharesSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		watts, idle := rapid.Float64Range(0, 700).Draw(t, "watts"), rapid.Float64Range(0, 100).Draw(t, "idle")
		activity := rapid.SliceOfN(rapid.Float64Range(0, 1), 1, 8).Draw(t, "activity")
		got, sum := Shares(nil, watts, idle, activity), 0.0
		for i, w := range got {
			sum += w
			for j := range got {
				if w < 0 || activity[i] >= activity[j] && w < got[j]-1e-9 {
					t.Fatalf("%v of activity %v", got, activity)
				}
			}
		}
		if math.Abs(sum-watts) > 1e-9*(1+watts) {
			t.Fatalf("%v of %v W are shared", sum, watts)
		}
	})
}
