package methods

import (
	"errors"
	"math"
	"strings"
	"testing"

	"carma/configs/models"
	"carma/estimator/environment"
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

func subject(t *testing.T, name, env string) Subject {
	t.Helper()
	c, err := zoo.Build(name, models.Overrides{Batch: 16})
	if err != nil {
		t.Fatal(err)
	}
	e, err := environment.Named(env)
	if err != nil {
		t.Fatal(err)
	}
	return Subject{Config: c, Environment: &e.Environment}
}

func answer(t *testing.T, m Method, s Subject) Answer {
	t.Helper()
	a, err := m.Estimate(s)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func warned(a Answer, text string) bool {
	return strings.Contains(strings.Join(a.Warnings, "\n"), text)
}

func TestBoundGrowsWithConfidence(t *testing.T) {
	s := subject(t, "resnet50", "a100-2025-09")
	last := answer(t, &Carma{}, s).Point
	for _, s.Confidence = range []float64{0.5, 0.8, 0.9, 0.95, 0.99, 0.9999} {
		a := answer(t, &Carma{}, s)
		if a.Upper < last || a.Upper < a.Point {
			t.Errorf("confidence %g: bound %d, before %d, point %d", s.Confidence, a.Upper, last, a.Point)
		}
		last = a.Upper
	}
	for _, s.Confidence = range []float64{-1, 1, 95, math.NaN()} {
		if _, err := (&Carma{}).Estimate(s); err == nil {
			t.Errorf("confidence %g: no error", s.Confidence)
		}
	}
}

func TestPartsMakeThePoint(t *testing.T) {
	for _, c := range []*Carma{{}, {Corrector: fixed{log: -0.1}}} {
		for _, env := range []string{"a100-2025-09", "a100-2024"} {
			a := answer(t, c, subject(t, "resnet50", env))
			var sum int64
			for _, p := range a.Parts {
				sum += p.Bytes
			}
			if d := sum - a.Point; d < -1 || d > 1 {
				t.Errorf("%s: parts are %d, the point is %d", env, sum, a.Point)
			}
		}
	}
}

// TestCorrectionIsForWhatItWasLearnedOn: the correction applies to generated
// networks of 2024, not to real models of 2025. It never exceeds the largest
// correction of a measured training.
func TestCorrectionIsForWhatItWasLearnedOn(t *testing.T) {
	for _, c := range []struct {
		env  string
		log  float64
		want float64
	}{{"a100-2025-09", 0.2, 0}, {"a100-2024", 0.2, 0.2}, {"a100-2024", -0.2, -0.2}, {"a100-2024", 7, maxCorrection}} {
		s := subject(t, "resnet50", c.env)
		plain, corrected := answer(t, &Carma{}, s), answer(t, &Carma{Corrector: fixed{log: c.log}}, s)
		if got := math.Log(float64(corrected.Point) / float64(plain.Point)); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%s, correction %g: the point changed by %g, want %g", c.env, c.log, got, c.want)
		}
	}
}

func TestWithoutTheCorrectionItSaysSo(t *testing.T) {
	s := subject(t, "resnet50", "a100-2024")
	for _, c := range []*Carma{{Why: "no library"}, {Corrector: fixed{err: errors.New("no library")}}} {
		if a := answer(t, c, s); !warned(a, "without the learned correction: no library") {
			t.Errorf("warnings %q", a.Warnings)
		}
	}
	if a := answer(t, &Carma{Corrector: fixed{log: math.NaN()}}, s); !warned(a, "not a number") || a.Point <= 0 {
		t.Errorf("%+v", a)
	}
	if a := answer(t, &Carma{Why: "no library"}, subject(t, "resnet50", "a100-2025-09")); len(a.Warnings) > 0 {
		t.Errorf("warnings %q where there is no correction to miss", a.Warnings)
	}
}

func TestEnvironmentWithoutMeasurements(t *testing.T) {
	s := subject(t, "resnet50", "a100-2025-09")
	e := *s.Environment
	e.Name = "h200-2027"
	s.Environment = &e
	if a := answer(t, &Carma{}, s); !warned(a, "no cnn network was measured in h200-2027") {
		t.Errorf("warnings %q", a.Warnings)
	}
}

func TestWhatDoesNotFitSaysSo(t *testing.T) {
	s := subject(t, "resnet50", "a100-2025-09")
	s.Config.Train.Batch = 4096
	a := answer(t, &Carma{}, s)
	if !warned(a, "does not fit") || a.Point < s.Environment.Capacity {
		t.Errorf("%d bytes of %d, warnings %q", a.Point, s.Environment.Capacity, a.Warnings)
	}
}

// The bound follows the batch size, and how far off the correction is expected to be.
func TestBoundVaries(t *testing.T) {
	upper := func(c Carma, batch int) float64 {
		s := subject(t, "resnet50", "a100-timm")
		s.Config.Train.Batch = batch
		a := answer(t, &c, s)
		return float64(a.Upper) / float64(a.Point)
	}
	narrow, wide := upper(Carma{Corrector: fixed{spread: 0.01}}, 16), upper(Carma{Corrector: fixed{spread: 0.1}}, 16)
	if ratio := math.Log(wide) / math.Log(narrow); math.Abs(ratio-10) > 0.01 {
		t.Errorf("bounds %g and %g at spreads of 0.01 and 0.1", narrow, wide)
	}
	if most := upper(Carma{Corrector: fixed{spread: 9}}, 16); most != upper(Carma{Corrector: fixed{spread: maxSpread}}, 16) {
		t.Errorf("a spread of 9 gives a bound of %g", most)
	}
	if small, large := upper(Carma{}, 8), upper(Carma{}, 64); small == large {
		t.Errorf("the same bound, %g, at batch sizes of 8 and 64", small)
	}
	if beyond, last := upper(Carma{}, 2048), upper(Carma{}, 1024); math.Abs(beyond-last) > 1e-6 {
		t.Errorf("bound %g beyond the largest batch size of the table, %g at it", beyond, last)
	}
}

func TestTrackedPeakAlone(t *testing.T) {
	s := Subject{Environment: subject(t, "resnet50", "a100-timm").Environment, FakeTensor: 10 << 30}
	a := answer(t, &Carma{}, s)
	if a.Point < 11<<30 || a.Point > 15<<30 || a.Upper <= a.Point {
		t.Errorf("%+v for a tracked peak of 10 GiB", a)
	}
	s.FakeTensor = 0
	if _, err := (&Carma{}).Estimate(s); !errors.Is(err, ErrNotApplicable) {
		t.Errorf("error %v for nothing known", err)
	}
}

func TestCalibrationIsWhole(t *testing.T) {
	c := calibrated()
	if len(c.Groups) < 4 {
		t.Fatalf("%d groups", len(c.Groups))
	}
	for _, g := range append(c.Groups, c.Tracker.Group) {
		for _, corrected := range []bool{false, g.Residual} {
			last := -1.0
			for _, confidence := range []float64{0.5, 0.9, 0.95} {
				b := g.bound(confidence, 16, corrected)
				most := 1.0
				if corrected {
					most = 10 // in units of the spread
				}
				if b < last || b > most {
					t.Errorf("%s %s, corrected %v: bound %g at %g, %g before", g.Environment, g.Family, corrected, b, confidence, last)
				}
				last = b
			}
		}
		if len(g.Plain) == 0 || g.Rows < 39 || g.Residual && len(g.Corrected) != len(g.Plain) {
			t.Errorf("%s %s: %d rows, %d and %d quantiles", g.Environment, g.Family, g.Rows, len(g.Plain), len(g.Corrected))
		}
	}
}
