package methods

import (
	"math"
	"testing"
)

func TestGivenARunAtAnotherBatchSize(t *testing.T) {
	a := Answer{Point: 8000, Upper: 16000, Parts: []Part{{"activations", 8000}}}
	seen := Seen{Measured: 5500, Point: 5000, Batch: 32} // 10 % more than the estimate
	b := a.Given(64, seen)
	if b.Point != 8800 || math.Abs(float64(b.Upper)/8800-math.Exp(0.08)) > 1e-3 || len(b.Parts) != 2 || b.Parts[1].Bytes != 800 {
		t.Errorf("%+v", b)
	}
	if far := a.Given(256, seen); far.Upper <= b.Upper || far.Point != b.Point {
		t.Errorf("three doublings away %+v, one away %+v", far, b)
	}
	tight := Answer{Point: 8000, Upper: 8100}
	if b := tight.Given(64, seen); float64(b.Upper)/float64(b.Point) > 8100./8000+1e-6 {
		t.Errorf("the bound widened: %+v", b)
	}
	if len(a.Parts) != 1 {
		t.Error("the answer itself was changed")
	}
	for _, s := range []Seen{{}, {Measured: 1, Point: 0, Batch: 1}, {Measured: -1, Point: 1, Batch: 1}} {
		if got := a.Given(64, s); got.Point != a.Point || got.Upper != a.Upper {
			t.Errorf("%+v changed the answer to %+v", s, got)
		}
	}
}
