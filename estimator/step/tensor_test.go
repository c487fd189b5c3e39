package step

import (
	"strings"
	"testing"

	"carma/configs/models"
)

// A block of two linear layers with GELU between: with tp the first is split by
// columns, the second by rows.
func TestTensorParallel(t *testing.T) {
	const width = 1024
	block := func(l models.Layer) models.Layer { l.Block = 1; return l }
	c := &models.Config{
		Train:  models.Train{Batch: 8, Optimizer: models.SGD},
		Inputs: []models.Input{{Shape: []int64{16, width}}},
		Layers: []models.Layer{
			{Type: models.Linear, Out: []int64{16, width}, Params: []int64{width * width}},
			block(models.Layer{Type: models.Linear, Out: []int64{16, 4 * width}, Params: []int64{4 * width * width}}),
			block(models.Layer{Type: models.GELU, Out: []int64{16, 4 * width}}),
			block(models.Layer{Type: models.Linear, Out: []int64{16, width}, Params: []int64{4 * width * width}}),
		},
	}
	for _, w := range []struct {
		parallel models.Parallel
		numbers  int64 // of the weights on a GPU
		parts    []bool
	}{
		{"", 9 * width * width, []bool{false, false, false, false, false}},
		{"tp:4", 3 * width * width, []bool{false, false, true, true, false}},
	} {
		c.Train.Parallel = w.parallel
		p, err := Prepare(c)
		if err != nil {
			t.Fatal(err)
		}
		var numbers int64
		for i := range p.weights {
			numbers += p.weights[i].numbers()
		}
		for i, part := range w.parts {
			if p.values[i].part != part {
				t.Errorf("%s: value %d is a part: %v", w.parallel, i, !part)
			}
		}
		if numbers != w.numbers {
			t.Errorf("%s: %d numbers of weights, want %d", w.parallel, numbers, w.numbers)
		}
	}
	c.Layers = c.Layers[:1]
	if _, err := Prepare(c); err == nil || !strings.Contains(err.Error(), "this network has none") {
		t.Error(err)
	}
}
