package booking

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"carma/estimator"
	"carma/internal/units"
	"carma/mapper/predict"
)

// machine simulates a machine on which all estimates are wrong by a factor. Each task is
// estimated with the earlier measurements, and then measured.
type machine struct {
	*testing.T
	p        *Predictor
	factor   float64
	measured []predict.EstimateError
}

// run estimates a training, runs it, and returns the error of the point and whether it
// used more than was allocated.
func (m *machine) run(model string, batch int) (e estimator.Estimate, off float64, above bool) {
	m.Helper()
	e = predicted(m.T, m.p, estimator.Query{Model: model, Batch: batch, GPUs: 1, Measured: m.measured})
	if e.Plain.Group == "" {
		m.Fatalf("%s at %d is no estimate that a run measures: %+v", model, batch, e)
	}
	peak := e.Plain.Point.Scale(m.factor)
	m.measured = append(m.measured, predict.EstimateError{RawEstimate: e.Plain, Peak: peak, Last: units.Instant(len(m.measured) + 1)})
	return e, math.Abs(math.Log(float64(e.Point) / float64(peak))), peak > e.Memory
}

// TestUnlearned: an error of 20 % in all estimates is corrected after a few tasks, also for
// other models, and that no task exceeds its bound then.
func TestUnlearned(t *testing.T) {
	for _, factor := range []float64{1.2, 1 / 1.2} {
		m := &machine{T: t, p: testPredictor(t), factor: factor}
		first, firstOff, _ := m.run("densenet121", 24)
		if firstOff < 0.18 || first.Same+first.Others > 0 {
			t.Fatalf("the first is off by %.3f: %+v", firstOff, first)
		}
		if e, off, _ := m.run("densenet121", 48); off > 0.6*firstOff || e.Same != 1 || !strings.Contains(e.Detail, "from 1 run of this model here") {
			t.Errorf("the second of its model is off by %.3f: %s", off, e.Detail)
		}
		for _, model := range []string{"densenet169", "resnet101", "convnext_tiny"} {
			m.run(model, 24)
		}
		for _, model := range []string{"resnet152", "vgg19", "densenet121"} {
			e, off, above := m.run(model, 40)
			if off > 0.08 || above {
				t.Errorf("factor %.2f: %s is off by %.3f, above its bound %v: %s", factor, model, off, above, e.Detail)
			}
			if !strings.Contains(e.Detail, fmt.Sprintf("corrected by %+.1f %%", 100*(float64(e.Point)/float64(e.Plain.Point)-1))) || !strings.Contains(e.Detail, "of other models here") {
				t.Errorf("%s", e.Detail)
			}
		}
	}
}

// TestOtherEnvironment: measurements with other software are not used.
func TestOtherEnvironment(t *testing.T) {
	m := &machine{T: t, p: testPredictor(t), factor: 1.2}
	for i := range 4 {
		m.run("densenet121", 24+8*i)
	}
	p, err := NewPredictor("h100-2026-11")
	if err != nil {
		t.Fatal(err)
	}
	q := estimator.Query{Model: "densenet121", Batch: 24, GPUs: 1}
	want := predicted(t, p, q)
	q.Measured = m.measured
	if e := predicted(t, p, q); e != want {
		t.Errorf("got %+v, want %+v", e, want)
	}
	q.Declared = 30 * units.GiB
	if e := predicted(t, p, q); e.Memory != q.Declared || e.Plain != want.Plain {
		t.Errorf("declared: %+v", e)
	}
	q = estimator.Query{Model: "resnet50", Batch: 60, GPUs: 1}
	if e := predicted(t, p, q); e.Method != estimator.Measured || e.Plain.Group != "" {
		t.Errorf("the figure of another batch size is a measurement: %+v", e)
	}
	q = estimator.Query{Model: "no-such-model", Declared: units.GiB}
	if e := predicted(t, p, q); e.Memory != units.GiB || e.Plain.Group != "" {
		t.Errorf("%+v", e)
	}
}
