package main

import (
	"strings"
	"testing"

	"carma/estimator"
	"carma/estimator/methods"
	"carma/estimator/onnx"
	"carma/mapper"
)

// fewQuery is of an unknown model with some figures.
var fewQuery = estimator.Query{Few: estimator.Few{Params: 25_000_000, Family: "cnn", Input: 150_528}, Batch: 64, GPUs: 1}

func testPredictor(t *testing.T) *predictor {
	t.Helper()
	p, err := newPredictor("carma", "")
	if err != nil {
		t.Fatal(err)
	}
	return p
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
	q.Declared = 3 * mapper.GiB
	if e, err := p.Estimate(q); err != nil || e.Method != estimator.Declared || e.Memory != q.Declared {
		t.Errorf("declared: %+v, %v", e, err)
	}
	q = fewQuery
	q.Batch = 1024 // the bound passes the GPU's memory
	if e, err := p.Estimate(q); err != nil || !e.WholeGPU || e.Memory != 0 {
		t.Errorf("large: %+v, %v", e, err)
	}
	q = fewQuery
	q.Estimator = "horus"
	if e, err := p.Estimate(q); err != nil || !e.WholeGPU || !strings.Contains(e.Detail, "estimator horus says nothing") {
		t.Errorf("horus: %+v, %v", e, err)
	}
}

func TestFewFiguresWithout(t *testing.T) {
	p := testPredictor(t)
	p.methods = methods.All(&methods.Carma{Why: "no library"})
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
