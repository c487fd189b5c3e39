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
	for _, env := range []string{"a100-2025-09", "a100-2024"} {
		a := answer(t, &Carma{}, subject(t, "resnet50", env))
		var sum int64
		for _, p := range a.Parts {
			sum += p.Bytes
		}
		if sum != a.Point {
			t.Errorf("%s: parts are %d, the point is %d", env, sum, a.Point)
		}
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

// The bound follows the batch size.
func TestBoundVaries(t *testing.T) {
	upper := func(batch int) float64 {
		s := subject(t, "resnet50", "a100-timm")
		s.Config.Train.Batch = batch
		a := answer(t, &Carma{}, s)
		return float64(a.Upper) / float64(a.Point)
	}
	if small, large := upper(8), upper(64); small == large {
		t.Errorf("the same bound, %g, at batch sizes of 8 and 64", small)
	}
	if beyond, last := upper(2048), upper(1024); math.Abs(beyond-last) > 1e-6 {
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
		last := -1.0
		for _, confidence := range []float64{0.5, 0.9, 0.95} {
			b := g.Plain.Log(confidence, 16)
			if b < last || b > 1 {
				t.Errorf("%s %s: bound %g at %g, %g before", g.Environment, g.Family, b, confidence, last)
			}
			last = b
		}
		if len(g.Plain) == 0 || g.Rows < 39 {
			t.Errorf("%s %s: %d rows, %d quantiles", g.Environment, g.Family, g.Rows, len(g.Plain))
		}
	}
}
