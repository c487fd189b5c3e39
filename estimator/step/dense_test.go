package step_test

import (
	"testing"

	"carma/configs/models"
	"carma/estimator/networks/zoo"
)

// TestDense compares the simulated step with what torchvision's networks for dense
// prediction allocate.
func TestDense(t *testing.T) {
	compare(t, "testdata/dense.csv", 0.03, 0.08, func(row map[string]string) (*models.Config, error) {
		return zoo.Build(row["model"], settingsIn(t, row))
	})
}
