package predict

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestPairsAreBounded checks that the oldest corrections are dropped, and the total error
// of predictions is kept.
func TestPairsAreBounded(t *testing.T) {
	p := pairs{Misses: 7, Off: 0.5}
	for i := range maxPairs + 1 {
		p.set(p.of(kindName(i), kindName(i+1)), 0.1, 0.01)
	}
	if len(p.all) > maxPairs || p.Misses != 7 || p.Off != 0.5 {
		t.Errorf("%d pairs, %v misses of %v", len(p.all), p.Misses, p.Off)
	}
	if _, ok := p.numbers[kindName(0)]; ok {
		t.Error("the oldest is still there")
	}
	n := p.all[len(p.all)-1]
	if n.Of != kindName(maxPairs) || n.Mean != 0.1 {
		t.Errorf("the newest is %+v", n)
	}
	if f := p.factor(p.number(n.Of), p.number(n.Beside)); math.Abs(f-math.Exp(0.1)) > 1e-9 {
		t.Errorf("its factor is %v", f)
	}
}

// TestFactors checks that the factors used by predictions are the factors of the
// corrections, for kinds in the table and beyond it, also after the oldest were dropped.
func TestFactors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var p pairs
		kinds := rapid.SampledFrom([]int{3, 2 * nearKinds}).Draw(t, "kinds")
		kind := func() string { return fmt.Sprint("k", rapid.IntRange(0, kinds-1).Draw(t, "kind")) }
		for range rapid.IntRange(0, 3).Draw(t, "others") * maxPairs / 4 {
			p.of(fmt.Sprint("k", len(p.all)%kinds), fmt.Sprint("o", len(p.all)))
		}
		for range rapid.IntRange(1, 30).Draw(t, "measurements") {
			p.set(p.of(kind(), kind()), rapid.Float64Range(-2, 2).Draw(t, "mean"), 0.01)
		}
		for _, c := range p.all {
			if got, want := p.factor(p.number(c.Of), p.number(c.Beside)), math.Exp(applied(c.Mean)); got != want {
				t.Fatalf("%+v has the factor %v, want %v", c, got, want)
			}
		}
	})
}

func kindName(i int) string { return fmt.Sprintf("kind%05d", i) }
