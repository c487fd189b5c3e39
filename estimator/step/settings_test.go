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

// TestSettings compares the simulated step with what PyTorch allocates, for many kinds
// of settings. The file's first line says where the figures are from. Workspaces and
// rounding by the cache are in neither.
func TestSettings(t *testing.T) {
	f, err := os.Open("testdata/settings.csv")
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
	var sum float64
	for _, row := range rows[1:] {
		c := trainingOf(t, row)
		got, err := step.Simulate(c, &step.Environment{Name: "plain"})
		if err != nil {
			t.Fatal(err)
		}
		off := float64(got.Allocated)/float64(number(t, row[10])) - 1
		t.Logf("%+5.1f %%  %s", 100*off, strings.Join(row[:10], " "))
		if math.Abs(off) > 0.05 {
			t.Errorf("%s: off by %.1f %%, at most 5", strings.Join(row[:10], " "), 100*off)
		}
		sum += math.Abs(off)
	}
	n := float64(len(rows) - 1)
	t.Logf("mean error %.1f %%, %g trainings", 100*sum/n, n)
	if sum/n > 0.02 {
		t.Errorf("off by %.1f %% in the mean; want 2", 100*sum/n)
	}
}

// trainingOf is the training of a row.
func trainingOf(t *testing.T, row []string) *models.Config {
	t.Helper()
	o := settingsOf(t, row)
	for _, word := range strings.Fields(row[9]) {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "accumulate":
			o.Accumulate = number(t, value)
		case "kernel": // what sdpa takes on a GPU
		case "masters":
			o.Masters = true
		case "loss":
			o.Loss = value
		case "padded":
			o.Padded = true
		case "fsdp": // the file's batch is that of one rank
			o.GPUs = number(t, value)
			o.Batch *= o.GPUs
			if o.Parallel == "" {
				o.Parallel = models.FSDP
			}
		case "tp":
			o.Parallel = models.Parallel("tp:" + value)
		case "reshard":
			o.Parallel = models.FSDPGrad
		case "bits":
			o.Bits, o.Precision = number(t, value), models.AMP
		case "offload":
			o.Offload = value
		case "adapters":
			o.DoRA = true
		case "implementation":
			o.Implementation = value
		default:
			t.Fatalf("%s: no such setting", word)
		}
	}
	c, err := hf.Build(row[0], o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
