package step_test

import (
	"encoding/csv"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"carma/configs/models"
	"carma/estimator/step"
)

// compare simulates the trainings of a table, and compares the memory of their tensors
// with the table's. It fails if the mean error, or the largest, is above its limit.
// The tables' first lines say where the figures are from; workspaces are in neither.
func compare(t *testing.T, path string, mean, largest float64, build func(row map[string]string) (*models.Config, error)) {
	t.Helper()
	rows := tableOf(t, path)
	var sum, worst float64
	kinds := map[string][]float64{}
	for _, row := range rows {
		c, err := build(row)
		if err != nil {
			t.Fatal(row, err)
		}
		if err := c.Validate(); err != nil {
			t.Fatal(row, err)
		}
		got, err := step.Simulate(c, &step.Environment{Name: "plain"})
		if err != nil {
			t.Fatal(row, err)
		}
		off := float64(got.Allocated)/float64(number(t, row["peak_bytes"])) - 1
		t.Logf("%+6.1f %%  %7.0f MiB  %s", 100*off, float64(got.Allocated)/(1<<20), row["all"])
		sum, worst = sum+math.Abs(off), max(worst, math.Abs(off))
		kinds[kindOf(row)] = append(kinds[kindOf(row)], math.Abs(off))
	}
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		t.Logf("%s: %d, mean %.1f %%, largest %.1f %%", k, len(kinds[k]), 100*total(kinds[k])/float64(len(kinds[k])), 100*slices.Max(kinds[k]))
	}
	n := float64(len(rows))
	t.Logf("mean error %.1f %%, largest %.1f %%, %g trainings", 100*sum/n, 100*worst, n)
	if sum/n > mean || worst > largest {
		t.Errorf("off by %.1f %% in the mean, at most %.1f %%; want %g and %g", 100*sum/n, 100*worst, 100*mean, 100*largest)
	}
}

// kindOf is how a row trains, as the summary groups them.
func kindOf(row map[string]string) string {
	kind := row["precision"]
	if row["lora"] != "" {
		kind += ", LoRA"
	}
	if row["checkpointing"] == "true" {
		kind += ", checkpointing"
	}
	return kind
}

func total(list []float64) (sum float64) {
	for _, x := range list {
		sum += x
	}
	return sum
}

// tableOf reads a table whose rows have a peak; "all" is a row's text.
func tableOf(t *testing.T, path string) (rows []map[string]string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comment = '#'
	lines, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines[1:] {
		row := map[string]string{"all": strings.Join(line, " ")}
		for i, name := range lines[0] {
			row[name] = line[i]
		}
		if row["peak_bytes"] != "" {
			rows = append(rows, row)
		}
	}
	return rows
}

// settingsIn are those of a row. A column that is not there changes nothing.
func settingsIn(t *testing.T, row map[string]string) models.Overrides {
	checkpointing := row["checkpointing"] == "true"
	o := models.Overrides{Precision: models.Precision(row["precision"]), Optimizer: models.Optimizer(row["optimizer"]), Checkpointing: &checkpointing}
	for name, to := range map[string]*int{"batch": &o.Batch, "image": &o.Image, "seq": &o.Sequence, "lora": &o.LoRA} {
		if row[name] != "" {
			*to = number(t, row[name])
		}
	}
	if row["targets"] != "" {
		o.Targets = strings.Split(row["targets"], "|")
	}
	return o
}
