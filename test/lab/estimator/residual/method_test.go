package residual

import (
	"errors"
	"math"
	"testing"

	"carma/configs/models"
	"carma/estimator/environment"
	"carma/estimator/methods"
	"carma/estimator/networks/zoo"
)

// fixed is a correction that always has the same answer.
type fixed struct {
	log, spread float64
	err         error
}

func (f fixed) Correct([]float32) (log, spread float64, err error) {
	if f.spread == 0 {
		f.spread = 0.03
	}
	return f.log, f.spread, f.err
}

func answer(t *testing.T, m methods.Method, env string) methods.Answer {
	t.Helper()
	c, err := zoo.Build("resnet50", models.Overrides{Batch: 16})
	if err != nil {
		t.Fatal(err)
	}
	e, err := environment.Named(env)
	if err != nil {
		t.Fatal(err)
	}
	a, err := m.Estimate(methods.Subject{Config: c, Environment: &e.Environment})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestCorrectionIsForWhatItWasLearnedOn: the correction applies to generated
// networks of 2024, not to real models of 2025. It never exceeds the largest
// correction of a measured training. The parts make the point.
func TestCorrectionIsForWhatItWasLearnedOn(t *testing.T) {
	for _, c := range []struct {
		env  string
		log  float64
		want float64
	}{{"a100-2025-09", 0.2, 0}, {"a100-2024", 0.2, 0.2}, {"a100-2024", -0.2, -0.2}, {"a100-2024", 7, maxCorrection}} {
		plain, corrected := answer(t, &methods.Carma{}, c.env), answer(t, &Corrected{Corrector: fixed{log: c.log}}, c.env)
		if got := math.Log(float64(corrected.Point) / float64(plain.Point)); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%s, correction %g: the point changed by %g, want %g", c.env, c.log, got, c.want)
		}
		sum := int64(0)
		for _, p := range corrected.Parts {
			sum += p.Bytes
		}
		if sum != corrected.Point {
			t.Errorf("%s: parts are %d, the point is %d", c.env, sum, corrected.Point)
		}
	}
}

func TestNoCorrectionIsAnError(t *testing.T) {
	c, err := zoo.Build("resnet50", models.Overrides{Batch: 16})
	if err != nil {
		t.Fatal(err)
	}
	e, err := environment.Named("a100-2024")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []fixed{{err: errors.New("no library")}, {log: math.NaN()}} {
		if _, err := (&Corrected{Corrector: f}).Estimate(methods.Subject{Config: c, Environment: &e.Environment}); err == nil {
			t.Errorf("%+v: no error", f)
		}
	}
}

// The bound follows how far off the correction is expected to be.
func TestBoundFollowsSpread(t *testing.T) {
	upper := func(f fixed) float64 {
		a := answer(t, &Corrected{Corrector: f}, "a100-timm")
		return float64(a.Upper) / float64(a.Point)
	}
	narrow, wide := upper(fixed{spread: 0.01}), upper(fixed{spread: 0.1})
	if ratio := math.Log(wide) / math.Log(narrow); math.Abs(ratio-10) > 0.01 {
		t.Errorf("bounds %g and %g at spreads of 0.01 and 0.1", narrow, wide)
	}
	if most := upper(fixed{spread: 9}); most != upper(fixed{spread: maxSpread}) {
		t.Errorf("a spread of 9 gives a bound of %g", most)
	}
}

func TestCalibrationIsWhole(t *testing.T) {
	for _, g := range groups() {
		last := -1.0
		for _, confidence := range []float64{0.5, 0.9, 0.95} {
			b := g.Bounds.Log(confidence, 16)
			if b < last || b > 10 { // in units of the spread
				t.Errorf("%s %s: bound %g at %g, %g before", g.Environment, g.Family, b, confidence, last)
			}
			last = b
		}
	}
	if len(groups()) < 4 {
		t.Errorf("%d groups", len(groups()))
	}
}
