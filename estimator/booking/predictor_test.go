package booking

import (
	"math"
	"strings"
	"testing"

	"carma/internal/units"

	"carma/configs/models"
	"carma/estimator"
	"carma/estimator/methods"
	"carma/estimator/networks/zoo"
	"carma/estimator/onnx"
)

// fewQuery asks about an unknown model with a few figures.
var fewQuery = estimator.Query{Few: estimator.Few{Params: 25_000_000, Family: "cnn", Input: 150_528}, Batch: 64, GPUs: 1}

func testPredictor(t *testing.T) *Predictor {
	t.Helper()
	p, err := NewPredictor("")
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func predicted(t *testing.T, p *Predictor, q estimator.Query) estimator.Estimate {
	t.Helper()
	e, err := p.Estimate(q)
	if err != nil {
		t.Fatal(err)
	}
	if e.Memory < e.Point {
		t.Errorf("%+v: the bound is below the point", e)
	}
	return e
}

// TestPredictorRuns: one earlier run at another batch size corrects an estimate
// in proportion. Two near runs replace it.
func TestPredictorRuns(t *testing.T) {
	p := testPredictor(t)
	for name, model := range map[string]string{"measured": "resnet50", "from its layers": "densenet121"} {
		here := predicted(t, p, estimator.Query{Model: model, Batch: 64})
		there := predicted(t, p, estimator.Query{Model: model, Batch: 32})
		run := estimator.Run{Batch: 32, Peak: there.Point.Scale(1.3)}
		e := predicted(t, p, estimator.Query{Model: model, Batch: 64, Runs: []estimator.Run{run}})
		if ratio := e.Point.GiB() / here.Point.GiB(); math.Abs(ratio-1.3) > 1e-6 {
			t.Errorf("%s: corrected by %.4f, want 1.3", name, ratio)
		}
		if e.Method != here.Method || !strings.Contains(e.Detail, "as runs at batch size 32 used") {
			t.Errorf("%s: %+v", name, e)
		}
		runs := []estimator.Run{{Batch: 32, Peak: 10 * units.GiB}, {Batch: 128, Peak: 22 * units.GiB}}
		if e := predicted(t, p, estimator.Query{Model: model, Batch: 64, Runs: runs}); e.Point != 14*units.GiB {
			t.Errorf("%s: %s between two runs", name, e.Point)
		}
	}
	e := predicted(t, p, estimator.Query{Batch: 64, Runs: []estimator.Run{{Batch: 32, Peak: 10 * units.GiB}}})
	if e.Method != estimator.OtherBatches || e.Memory != 20*units.GiB {
		t.Errorf("of an unknown model: %+v", e)
	}
	e = predicted(t, p, estimator.Query{Declared: units.GiB, Batch: 64, Runs: []estimator.Run{{Batch: 32, Peak: 10 * units.GiB}}})
	if e.Memory != units.GiB {
		t.Errorf("declared, and yet %+v", e)
	}
}

// TestPredictorNetwork: the network that a probe found counts more than the name.
func TestPredictorNetwork(t *testing.T) {
	p := testPredictor(t)
	probed, err := zoo.Build("vgg16", models.Overrides{Batch: 32})
	if err != nil {
		t.Fatal(err)
	}
	probed.Origin = "probe"
	named := predicted(t, p, estimator.Query{Model: "resnet18", Batch: 32})
	e := predicted(t, p, estimator.Query{Model: "resnet18", Batch: 16, Network: probed})
	if e.Point <= named.Point || !strings.Contains(e.Detail, "from the probe") {
		t.Errorf("by name %s, by network %+v", named.Point, e)
	}
	// The program's batch size 16 was 32 on all GPUs together, so its 8 is 16.
	half, err := probed.With(models.Overrides{Batch: 16})
	if err != nil {
		t.Fatal(err)
	}
	there := predicted(t, p, estimator.Query{Network: half})
	runs := []estimator.Run{{Batch: 8, Peak: there.Point.Scale(1.1)}}
	c := predicted(t, p, estimator.Query{Model: "resnet18", Batch: 16, Network: probed, Runs: runs})
	if ratio := c.Point.GiB() / e.Point.GiB(); math.Abs(ratio-1.1) > 1e-6 {
		t.Errorf("corrected by %.4f, want 1.1", ratio)
	}
}

func TestFewFigures(t *testing.T) {
	if s := onnx.Status(); !s.On {
		t.Skip(s.Why)
	}
	p := testPredictor(t)
	e, err := p.Estimate(fewQuery)
	if err != nil || e.WholeGPU || e.Method != "carma" || e.Point <= 0 || e.Memory < e.Point || !e.Loose {
		t.Fatalf("got %+v, %v", e, err)
	}
	if want := "unknown cnn of 25000000 parameters at batch size 64 by estimator carma"; !strings.HasPrefix(e.Detail, want) {
		t.Errorf("detail %q, want %q", e.Detail, want)
	}
	q := fewQuery
	q.Declared = 3 * units.GiB
	if e, err := p.Estimate(q); err != nil || e.Method != estimator.Declared || e.Memory != q.Declared {
		t.Errorf("declared: %+v, %v", e, err)
	}
	q = fewQuery
	q.Batch = 1024 // the bound exceeds the GPU's memory
	if e, err := p.Estimate(q); err != nil || !e.WholeGPU || e.Memory != 0 {
		t.Errorf("large: %+v, %v", e, err)
	}
	q = fewQuery
	q.Estimator = "carma"
	if e, err := p.Estimate(q); err != nil || e.Memory == 0 {
		t.Errorf("by name: %+v, %v", e, err)
	}
}

// TestOthersAreNotBooked: the estimators of the comparison allocate nothing.
func TestOthersAreNotBooked(t *testing.T) {
	p := testPredictor(t)
	for _, q := range []estimator.Query{{Model: "resnet50", Batch: 64}, fewQuery, {}} {
		q.Estimator = "horus"
		if e, err := p.Estimate(q); err == nil || !strings.Contains(err.Error(), `booked by estimator carma; leave "horus" out`) {
			t.Errorf("%+v, %v", e, err)
		}
		q.Declared = units.GiB
		if e, err := p.Estimate(q); err != nil || e.Memory != units.GiB {
			t.Errorf("declared: %+v, %v", e, err)
		}
	}
}

func TestFewFiguresWithout(t *testing.T) {
	p := testPredictor(t)
	p.method = &methods.Carma{Why: "no library"}
	if e, err := p.Estimate(fewQuery); err != nil || !e.WholeGPU || !strings.Contains(e.Detail, "no library") {
		t.Errorf("without the library: %+v, %v", e, err)
	}
	for _, few := range []estimator.Few{{Params: 1}, {Family: "cnn"}, {Params: 1, Family: "rnn"}, {Layers: 3}} {
		q := fewQuery
		q.Few = few
		if e, err := p.Estimate(q); err == nil {
			t.Errorf("%+v: %+v", few, e)
		}
	}
}

// A measurement of the default environment is moved to an environment whose
// processes have more memory before their first tensor. ResNet-18 on CIFAR-100
// took 860 MiB in the default one and 1,082 on an H100, where a limit of 860
// ended it.
func TestMeasuredElsewhere(t *testing.T) {
	q := estimator.Query{Model: "resnet18/cifar100", Batch: 64, GPUs: 1}
	at := func(environment string) estimator.Estimate {
		t.Helper()
		p, err := NewPredictor(environment)
		if err != nil {
			t.Fatal(err)
		}
		e, err := p.Estimate(q)
		if err != nil || e.Method != estimator.Measured {
			t.Fatalf("%+v %v", e, err)
		}
		return e
	}
	here, there := at("h100-2026-11"), at("")
	if more := here.Memory - there.Memory; more != 235*units.MiB || here.Point-there.Point != more {
		t.Errorf("%s booked there, %s here", there.Memory, here.Memory)
	}
	if here.Memory < 1082*units.MiB || !strings.Contains(here.Detail, "235 MiB more before its first tensor") {
		t.Errorf("%s: %s", here.Memory, here.Detail)
	}
	if less := at("a100-2024"); less.Memory < there.Memory {
		t.Errorf("%s booked where a process has as much or more", less.Memory)
	}
}
