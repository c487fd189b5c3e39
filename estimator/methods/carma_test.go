package methods

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"carma/configs/models"
	"carma/configs/models/zoo"
	"carma/estimator/environment"
)

// corrector answers one number.
type corrector float64

func (c corrector) Correct([]float32) (float64, error) {
	if c > 99 {
		return 0, errors.New("no library")
	}
	return float64(c), nil
}

func carmaSubject(t *testing.T) Subject {
	t.Helper()
	c, err := zoo.Build("resnet50", models.Overrides{Batch: 32})
	if err != nil {
		t.Fatal(err)
	}
	env, err := environment.Named("")
	if err != nil {
		t.Fatal(err)
	}
	return Subject{Config: c, Environment: &env.Environment}
}

func TestCalibration(t *testing.T) {
	c := calibrated()
	if len(c.Groups) == 0 {
		t.Fatal("no groups")
	}
	for _, g := range append(slices.Clone(c.Groups), c.Tracker.Group) {
		has := func(qs []quantile) bool {
			return slices.ContainsFunc(qs, func(q quantile) bool { return q.Confidence == 0.95 })
		}
		if !has(g.Plain) || g.Residual && !has(g.Corrected) {
			t.Errorf("group %q %q has no bound at 0.95", g.Environment, g.Family)
		}
	}
}

func TestCarmaBound(t *testing.T) {
	for _, with := range []Corrector{nil, corrector(0.1)} {
		s, last := carmaSubject(t), int64(0)
		for _, confidence := range []float64{0.01, 0.5, 0.8, 0.9, 0.95, 0.99, 0.9999} {
			s.Confidence = confidence
			a, err := (&Carma{Corrector: with}).Estimate(s)
			if err != nil || a.Upper < a.Point || a.Upper < last || a.Point <= 0 {
				t.Errorf("at %g: point %d, bound %d (%v), %d before", confidence, a.Point, a.Upper, err, last)
			}
			last = a.Upper
		}
	}
	for _, confidence := range []float64{-0.5, 1, 2, math.NaN(), math.Inf(1)} {
		s := carmaSubject(t)
		s.Confidence = confidence
		if _, err := (&Carma{}).Estimate(s); err == nil || !strings.Contains(err.Error(), "confidence") {
			t.Errorf("confidence %g: %v, want it refused", confidence, err)
		}
	}
}

func TestCarmaCorrection(t *testing.T) {
	s := carmaSubject(t)
	generated, err := environment.Named("a100-2024") // the correction was learned there
	if err != nil {
		t.Fatal(err)
	}
	s.Environment = &generated.Environment
	plain, err := (&Carma{Why: "it is off"}).Estimate(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		of      Carma
		factor  float64
		warning string
	}{
		{Carma{Why: "it is off"}, 1, "without the learned correction: it is off"},
		{Carma{Corrector: corrector(0.1)}, math.Exp(0.1), ""},
		{Carma{Corrector: corrector(9)}, math.Exp(maxCorrection), ""},
		{Carma{Corrector: corrector(-9)}, math.Exp(-maxCorrection), ""},
		{Carma{Corrector: corrector(math.NaN())}, 1, "the learned correction failed"},
		{Carma{Corrector: corrector(100)}, 1, "no library"},
	} {
		a, err := c.of.Estimate(s)
		if err != nil || math.Abs(float64(a.Point)/float64(plain.Point)-c.factor) > 1e-6 {
			t.Errorf("%v: %d bytes (%v), want %g x %d", c.of.Corrector, a.Point, err, c.factor, plain.Point)
		}
		all := strings.Join(a.Warnings, "; ")
		if !strings.Contains(all, c.warning) || c.warning == "" && strings.Contains(all, "correction") {
			t.Errorf("%v: warnings %q, want %q", c.of.Corrector, all, c.warning)
		}
	}
}

func TestCarmaElsewhere(t *testing.T) {
	s := carmaSubject(t)
	env := *s.Environment
	s.Environment = &env
	env.Name = "h300"
	a, err := (&Carma{}).Estimate(s)
	if err != nil || !strings.Contains(strings.Join(a.Warnings, "; "), "was measured in h300") {
		t.Errorf("warnings %q (%v), want one of another environment", a.Warnings, err)
	}
	env.Capacity = env.ContextFor(true) + 64<<20
	a, err = (&Carma{}).Estimate(s)
	if err != nil || a.Point < env.Capacity || a.Upper != a.Point || !strings.Contains(strings.Join(a.Warnings, "; "), "does not fit into") {
		t.Errorf("on a small GPU: %+v (%v), want out of memory", a, err)
	}
	if _, err := (&Carma{}).Estimate(Subject{Environment: &env}); !errors.Is(err, ErrNotApplicable) {
		t.Errorf("nothing known: %v, want not applicable", err)
	}
}
