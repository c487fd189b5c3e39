package correct

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

var factor = math.Log(1.2)

func TestNothingSeen(t *testing.T) {
	for _, bound := range []float64{0.01, 0.18, 1.2} {
		if c := Of(nil, "a", bound); c.Log != 0 || c.Upper != bound || c.Same+c.Others != 0 {
			t.Errorf("%+v", c)
		}
		s := shipped(bound)
		if got := quantile95(tails) * math.Sqrt(s.shift+s.model+s.run); math.Abs(got-bound) > 1e-9 {
			t.Errorf("the parts of %g make %g", bound, got)
		}
	}
}

// TestSystematic: estimates that are all 20 % too low are corrected after a few runs, and
// the second run of a model is better estimated than its first. The bounds come from real
// models, generated CNNs and MLPs.
func TestSystematic(t *testing.T) {
	for _, bound := range []float64{0.18, 0.12, 0.06, 0.0107} {
		var runs []Run
		var left []float64
		for i := range 8 {
			c := Of(runs, fmt.Sprint("model", i), bound)
			left = append(left, math.Abs(factor-c.Log))
			if i >= 3 && c.Upper < factor {
				t.Errorf("bound %g: after %d models the bound is %g, below what is used", bound, i, c.Upper)
			}
			runs = append(runs, Run{fmt.Sprint("model", i), factor})
		}
		if left[1] > left[0] || left[3] > 0.5*left[0] || left[7] > 0.25*left[0] {
			t.Errorf("bound %g: errors %.3f of models that come one after the other", bound, left)
		}
		var own []float64
		for n := range 4 {
			own = append(own, math.Abs(factor-Of(slices.Repeat([]Run{{"a", factor}}, n), "a", bound).Log))
		}
		if own[1] >= own[0] || own[2] > 0.3*own[0] || own[3] > 0.15*own[0] {
			t.Errorf("bound %g: errors %.3f of one model's runs", bound, own)
		}
	}
}

// TestOutlier: one run with wrong settings changes little, here with an error of a factor
// of 2, and one with an error of more than 3 changes nothing.
func TestOutlier(t *testing.T) {
	var runs []Run
	for i := range 6 {
		runs = append(runs, Run{fmt.Sprint("model", i), 0.01 * float64(i%3-1)})
	}
	clean := Of(runs, "new", 0.12)
	dirty := Of(append(slices.Clone(runs), Run{"odd", -math.Ln2}), "new", 0.12)
	if math.Abs(clean.Log-dirty.Log) > 0.01 || dirty.Upper > clean.Upper+0.05 || dirty.Upper < clean.Upper-0.01 {
		t.Errorf("%+v without it, %+v with it", clean, dirty)
	}
	other := Of(append(slices.Clone(runs), Run{"odd", 1.2}, Run{"odd", math.NaN()}, Run{"odd", math.Inf(1)}), "new", 0.12)
	if other != clean {
		t.Errorf("%+v, want %+v", other, clean)
	}
	one := Of([]Run{{"a", -math.Ln2}}, "b", 0.12)
	if math.Abs(one.Log) > 0.05 {
		t.Errorf("a single run of another model: %+v", one)
	}
}

// TestBound checks that the bound gets smaller if estimates and runs agree, and larger if their
// scatter exceeds the shipped value.
func TestBound(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	var tight, wide []Run
	for i := range 24 {
		name := fmt.Sprint("model", i/2)
		x := rnd.NormFloat64()
		tight, wide = append(tight, Run{name, 0.02 * x}), append(wide, Run{name, 0.2 * x})
	}
	if c := Of(tight, "new", 0.18); c.Upper-c.Log > 0.13 || c.Upper-c.Log < leastBound {
		t.Errorf("%+v where all agree within 2 %%", c)
	}
	if c := Of(wide, "new", 0.18); c.Upper-c.Log < 0.25 {
		t.Errorf("%+v where they scatter by 20 %%", c)
	}
	same := slices.Repeat([]Run{{"a", 0}}, 40)
	if c := Of(same, "a", 0.18); c.Upper-c.Log < leastBound || c.Same != Kept {
		t.Errorf("%+v after the same run many times", c)
	}
	if c := Of(same, "a", 0.0107); c.Upper-c.Log < 0.0107 {
		t.Errorf("%+v: below the shipped bound", c)
	}
}

func TestOrderDoesNotCount(t *testing.T) {
	rnd := rand.New(rand.NewPCG(2, 2))
	var runs []Run
	for i := range Kept {
		runs = append(runs, Run{fmt.Sprint("model", i%5), 0.1 * rnd.NormFloat64()})
	}
	want := Of(runs, "model2", 0.2)
	for range 20 {
		rnd.Shuffle(len(runs), func(i, j int) { runs[i], runs[j] = runs[j], runs[i] })
		if got := Of(runs, "model2", 0.2); got != want {
			t.Fatalf("%+v, want %+v", got, want)
		}
	}
}

// lab is a machine that differs from the shipped calibration.
type lab struct {
	bound  float64 // shipped
	shift  float64 // of all estimates
	spread float64 // of its models and runs, as a multiple of the shipped
	odd    float64 // share of runs with wrong settings
}

// plays simulates many machines of a kind. It counts how often tasks use more than allocated,
// with the shipped and with the corrected estimates, and returns the errors of the point
// estimates. The first tasks of each machine are not counted.
func (l lab) plays(seed uint64, first int) (missed, shippedMissed, wrong, shippedWrong float64) {
	rnd := rand.New(rand.NewPCG(seed, 7))
	s, n := shipped(l.bound), 0.0
	for range 150 {
		var runs []Run
		shift := l.shift + l.spread*math.Sqrt(s.shift)*rnd.NormFloat64()
		models := map[string]float64{}
		for i := range 40 {
			name := fmt.Sprint(rnd.IntN(10))
			if _, known := models[name]; !known {
				models[name] = shift + l.spread*math.Sqrt(s.model)*rnd.NormFloat64()
			}
			is := models[name] + l.spread*math.Sqrt(s.run)*rnd.NormFloat64()
			c := Of(runs, name, l.bound)
			if i >= first {
				n++
				wrong, shippedWrong = wrong+math.Abs(is-c.Log), shippedWrong+math.Abs(is)
				if is > c.Upper {
					missed++
				}
				if is > l.bound {
					shippedMissed++
				}
			}
			if rnd.Float64() < l.odd {
				is = 2 * (rnd.Float64() - 0.5)
			}
			runs = append(runs, Run{name, is})
		}
	}
	return missed / n, shippedMissed / n, wrong / n, shippedWrong / n
}

// TestCoverage simulates 150 machines of each kind with 40 tasks of ten models. Where the
// shipped calibration holds, the bound holds for 95 % before and after; where it does not, the
// corrected bound holds for more tasks than the shipped one.
func TestCoverage(t *testing.T) {
	for i, row := range []struct {
		lab
		first int
		most  float64 // share of tasks above the corrected bound
	}{
		{lab{bound: 0.18, spread: 1}, 0, 0.055},
		{lab{bound: 0.18, spread: 1}, 20, 0.055},
		{lab{bound: 0.03, spread: 1}, 0, 0.055},
		{lab{bound: 0.18, spread: 0.5}, 0, 0.05},
		{lab{bound: 0.18, spread: 1, odd: 0.05}, 0, 0.055},
		{lab{bound: 0.18, spread: 2}, 5, 0.10},
		{lab{bound: 0.18, shift: factor, spread: 1}, 5, 0.07},
		{lab{bound: 0.06, shift: factor, spread: 1}, 5, 0.07},
		{lab{bound: 0.18, shift: -factor, spread: 1}, 5, 0.055},
		{lab{bound: 0.18, shift: factor, spread: 1, odd: 0.05}, 5, 0.08},
	} {
		missed, before, wrong, wrongBefore := row.plays(uint64(i), row.first)
		t.Logf("%+v after %d tasks: %.1f %% above the bound, shipped %.1f %%; mean error %.1f %%, shipped %.1f %%", row.lab, row.first, 100*missed, 100*before, 100*wrong, 100*wrongBefore)
		if missed > row.most || missed > max(before+0.01, 0.055) {
			t.Errorf("%+v: %.1f %% above the bound, shipped %.1f %%", row.lab, 100*missed, 100*before)
		}
		if wrong > 0.9*wrongBefore {
			t.Errorf("%+v: mean error %.3f, shipped %.3f", row.lab, wrong, wrongBefore)
		}
	}
}

func TestQuantile(t *testing.T) {
	for freedom, want := range map[float64]float64{8: 1.8595, 12: 1.7823, 30: 1.6973, 1e6: 1.6449} {
		if got := quantile95(freedom); math.Abs(got-want) > 0.01 {
			t.Errorf("%g degrees: %g, want %g", freedom, got, want)
		}
	}
}

// BenchmarkOf corrects an estimate by a full history.
func BenchmarkOf(b *testing.B) {
	rnd := rand.New(rand.NewPCG(3, 3))
	var runs []Run
	for i := range 4096 {
		runs = append(runs, Run{fmt.Sprint("model", i%500), 0.1 * rnd.NormFloat64()})
	}
	for b.Loop() {
		Of(runs, "model7", 0.2)
	}
}
