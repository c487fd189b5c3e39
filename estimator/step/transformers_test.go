package step_test

import (
	"encoding/csv"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"carma/configs/models"
	"carma/estimator/networks/hf"
	"carma/estimator/step"
)

// TestTransformers compares the simulated step with what the transformers library
// allocates, for models of many kinds and ways to train them. The file's first line
// says where the figures are from. Workspaces and rounding by the cache are in neither.
func TestTransformers(t *testing.T) {
	f, err := os.Open("testdata/transformers.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comment = '#'
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var sum, worst float64
	for _, row := range rows[1:] {
		c, err := hf.Build(row[0], settingsOf(t, row))
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.Layers {
			if c.Layers[i].Type == models.Attention {
				c.Layers[i].Unfused = row[8] == "eager"
			}
		}
		got, err := step.Simulate(c, &step.Environment{Name: "plain"})
		if err != nil {
			t.Fatal(err)
		}
		off := float64(got.Allocated)/float64(number(t, row[9])) - 1
		t.Logf("%+5.1f %%  %s", 100*off, strings.Join(row[:9], " "))
		sum, worst = sum+math.Abs(off), max(worst, math.Abs(off))
	}
	n := float64(len(rows) - 1)
	t.Logf("mean error %.1f %%, largest %.1f %%, %g trainings", 100*sum/n, 100*worst, n)
	if sum/n > 0.01 || worst > 0.05 {
		t.Errorf("off by %.1f %% in the mean, at most %.1f %%; want 1 and 5", 100*sum/n, 100*worst)
	}
}

func settingsOf(t *testing.T, row []string) models.Overrides {
	checkpointing := row[5] == "true"
	o := models.Overrides{
		Batch: number(t, row[1]), Sequence: number(t, row[2]), Precision: models.Precision(row[3]), Optimizer: models.Optimizer(row[4]),
		Checkpointing: &checkpointing,
	}
	if row[6] != "" {
		o.LoRA = number(t, row[6])
	}
	if row[7] != "" {
		o.Targets = strings.Split(row[7], "|")
	}
	return o
}

func number(t *testing.T, s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
