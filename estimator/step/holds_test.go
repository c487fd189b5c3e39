package step_test

import (
	"testing"

	"carma/configs/models"
	"carma/estimator/step"
)

// A layer that holds an earlier output keeps it until it has run: without a gradient
// nothing else does. Outputs that the last layer holds are freed at the end of the pass.
func TestHolds(t *testing.T) {
	const large, small = 1 << 22, 1 << 20
	peak := func(middle, last []int) int64 {
		c := &models.Config{
			Schema: models.Schema, Name: "holds", Family: models.Other, Train: models.Train{Batch: 1, Optimizer: models.NoOptimizer},
			Inputs: []models.Input{{Shape: []int64{small}}},
			Layers: []models.Layer{
				{Type: models.OtherLayer, Inputs: []int{-1}, Out: []int64{large}},
				{Type: models.OtherLayer, Inputs: []int{0}, Out: []int64{small}},
				{Type: models.OtherLayer, Inputs: []int{1}, Out: []int64{large}, Holds: middle},
				{Type: models.Loss, Inputs: []int{2}, Out: []int64{1}, Whole: true, Holds: last},
			},
		}
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		got, err := step.Simulate(c, &step.Environment{Name: "plain"})
		if err != nil {
			t.Fatal(err)
		}
		return got.Allocated
	}
	free, held := peak(nil, nil), peak([]int{0}, nil)
	if held-free < 4*large/2 {
		t.Errorf("%d bytes, %d without; want most of the %d of the output that is held", held, free, 4*large)
	}
	if last := peak(nil, []int{0}); last > held+large {
		t.Errorf("%d bytes if the last layer holds it: it is there more than once", last)
	}
}
