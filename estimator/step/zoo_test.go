package step_test

import (
	"testing"

	"carma/configs/models"
	"carma/estimator/networks/zoo"
	"carma/estimator/step"
)

// Networks of the zoo take more memory the larger the batch is. That holds for the requested
// memory. Blocks that the allocator does not split can be up to a MiB larger, so Allocated may
// decrease a little.
func TestZoo(t *testing.T) {
	env := &step.Environment{CuBLAS: 8 << 20}
	for _, name := range zoo.Names() {
		last := int64(0)
		for _, batch := range []int{1, 2, 4, 16, 64, 256} {
			c, err := zoo.Build(name, models.Overrides{Batch: batch})
			if err != nil {
				t.Fatal(err)
			}
			r, err := step.Simulate(c, env)
			if err != nil {
				t.Fatalf("%s, batch size %d: %v", name, batch, err)
			}
			var sum int64
			for _, n := range r.Parts {
				sum += n
			}
			if sum < last {
				t.Errorf("%s, batch size %d: %d bytes, %d before", name, batch, sum, last)
			}
			last = sum
			if sum > r.Allocated || r.Allocated > r.Reserved || sum == 0 {
				t.Errorf("%s, batch size %d: parts %d, allocated %d, reserved %d bytes", name, batch, sum, r.Allocated, r.Reserved)
			}
		}
	}
}
