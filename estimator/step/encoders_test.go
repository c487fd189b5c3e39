package step_test

import (
	"encoding/csv"
	"math"
	"os"
	"strings"
	"testing"

	"carma/configs/models"
	"carma/estimator/networks/hf"
	"carma/estimator/step"
)

// TestEncoders is [TestTransformers] for models beside causal decoders: of text, images
// and sound, and those from text to text.
func TestEncoders(t *testing.T) {
	f, err := os.Open("testdata/encoders.csv")
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
		c, err := hf.Build(row[0], headed(t, row))
		if err != nil {
			t.Fatal(err)
		}
		got, err := step.Simulate(c, &step.Environment{Name: "plain"})
		if err != nil {
			t.Fatal(err)
		}
		off := float64(got.Allocated)/float64(number(t, row[12])) - 1
		t.Logf("%+5.1f %%  %s", 100*off, strings.Join(row[:12], " "))
		sum, worst = sum+math.Abs(off), max(worst, math.Abs(off))
	}
	n := float64(len(rows) - 1)
	t.Logf("mean error %.1f %%, largest %.1f %%, %g trainings", 100*sum/n, 100*worst, n)
	if sum/n > 0.02 || worst > 0.05 {
		t.Errorf("off by %.1f %% in the mean, at most %.1f %%; want 2 and 5", 100*sum/n, 100*worst)
	}
}

// headed are the settings of a row: the model, its head, batch, sequence, target, image,
// and how it is trained.
func headed(t *testing.T, row []string) models.Overrides {
	o := settingsOf(t, []string{row[0], row[2], "0", row[6], row[7], row[8], row[9], row[10], row[11]})
	o.Head = row[1]
	for i, to := range map[int]*int{3: &o.Sequence, 4: &o.Target, 5: &o.Image} {
		if row[i] != "" {
			*to = number(t, row[i])
		}
	}
	return o
}
