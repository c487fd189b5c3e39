package step_test

import (
	"math"
	"testing"

	"carma/configs/models"
	"carma/estimator/networks/hf"
	"carma/estimator/step"
)

// TestWindowsInSingleOperations: scores are as wide as a window, not as the image. The
// figures are from transformers_steps.py too. The softmax gradient's memory besides the
// scores is not counted.
func TestWindowsInSingleOperations(t *testing.T) {
	for _, m := range []struct {
		name  string
		batch int
		want  float64
	}{{"facebook/sam-vit-base", 1, 9.188e9}, {"microsoft/swin-tiny-patch4-window7-224", 32, 3.789e9}} {
		c, err := hf.Build(m.name, models.Overrides{Batch: m.batch, Optimizer: models.AdamW, Attention: "eager"})
		if err != nil {
			t.Fatal(err)
		}
		got, err := step.Simulate(c, &step.Environment{Name: "plain"})
		if err != nil {
			t.Fatal(err)
		}
		if off := float64(got.Allocated)/m.want - 1; math.Abs(off) > 0.08 {
			t.Errorf("%s is off by %+.1f %%", m.name, 100*off)
		}
	}
}
