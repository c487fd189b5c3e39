//go:build cgo

package nvml

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestEnergy(t *testing.T) {
	begin := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	type step struct {
		after   time.Duration
		counter uint64 // mJ
		counted bool
		power   float64
		want    float64 // J
	}
	for name, steps := range map[string][]step{
		"a counter":               {{0, 5_000_000, true, 100, 0}, {time.Second, 5_100_000, true, 100, 100}, {time.Second, 5_100_000, true, 100, 100}, {time.Second, 5_350_000, true, 100, 350}},
		"reset":                   {{0, 5_000_000, true, 100, 0}, {time.Second, 5_100_000, true, 100, 100}, {time.Second, 40_000, true, 100, 140}, {time.Second, 140_000, true, 100, 240}},
		"no counter":              {{0, 0, false, 100, 0}, {time.Second, 0, false, 100, 100}, {2 * time.Second, 0, false, 50, 200}},
		"unreadable for a moment": {{0, 5_000_000, true, 100, 0}, {time.Second, 0, false, 100, 100}, {time.Second, 5_200_000, true, 100, 200}, {time.Second, 5_300_000, true, 100, 300}},
		"a jump that cannot be":   {{0, 5_000_000, true, 100, 0}, {time.Second, 1 << 62, true, 100, 100}, {time.Second, 1<<62 + 100_000, true, 100, 200}},
		"a gap without a counter": {{0, 0, false, 100, 0}, {time.Hour, 0, false, 100, 6000}},
		"a gap with one":          {{0, 5_000_000, true, 100, 0}, {time.Hour, 365_000_000, true, 100, 360_000}},
		"a clock that goes back":  {{0, 0, false, 100, 0}, {-time.Hour, 0, false, 100, 0}},
	} {
		m, now := meter{}, begin
		for i, st := range steps {
			now = now.Add(st.after)
			if got := m.read(now, st.counter, st.counted, st.power); !near(got, st.want) {
				t.Errorf("%s: reading %d is %v J, want %v", name, i, got, st.want)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		m, now, last := meter{}, begin, 0.0
		for range rapid.IntRange(1, 30).Draw(t, "readings") {
			now = now.Add(time.Duration(rapid.Int64Range(-int64(time.Hour), int64(time.Hour)).Draw(t, "after")))
			got := m.read(now, rapid.Uint64().Draw(t, "mJ"), rapid.Bool().Draw(t, "counted"), rapid.Float64Range(0, mostPower).Draw(t, "W"))
			if !(got >= last) {
				t.Fatalf("from %v J to %v J", last, got)
			}
			last = got
		}
	})
}
