package step_test

import (
	"testing"

	"carma/configs/models"
	"carma/estimator/networks/zoo"
)

// TestDiffusion compares the simulated step with what the diffusers library allocates.
func TestDiffusion(t *testing.T) {
	compare(t, "testdata/diffusion.csv", 0.03, 0.08, func(row map[string]string) (*models.Config, error) {
		o := settingsIn(t, row)
		return zoo.Build(row["model"], o)
	})
}

// TestYOLO compares the simulated step with what the ultralytics package allocates.
func TestYOLO(t *testing.T) {
	compare(t, "testdata/yolo.csv", 0.04, 0.08, func(row map[string]string) (*models.Config, error) {
		return zoo.Build(row["model"], settingsIn(t, row))
	})
}
