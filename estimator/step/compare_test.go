package step_test

import (
	"maps"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"carma/configs/models"
	"carma/estimator/step"
	"carma/estimator/tabletest"
)

// table is a file of trainings whose memory PyTorch was seen to allocate. Its first line
// says where the figures are from.
type table struct {
	file string // in testdata
	// mean and largest limit the mean and the largest error of the simulated step.
	mean, largest float64
}

// tables are all files of trainings. A new one needs a line here.
var tables = []table{
	{"transformers.csv", 0.01, 0.05},
	{"encoders.csv", 0.01, 0.035},
	{"settings.csv", 0.02, 0.05},
	{"diffusion.csv", 0.03, 0.08},
	{"yolo.csv", 0.015, 0.025},
	{"gnn.csv", 0.05, 0.08},
	{"dense.csv", 0.015, 0.05},
	{"queries.csv", 0.015, 0.09},
	{"recurrent.csv", 0.01, 0.02},
	{"quantized.csv", 0.01, 0.03},
	{"zero.csv", 0.01, 0.03},
}

// TestTrainings compares the simulated step with what PyTorch and the libraries of the
// models allocate. go test -run TestTrainings/yolo -v prints each training of yolo.csv
// beside ours.
func TestTrainings(t *testing.T) {
	for _, table := range tables {
		t.Run(table.file, func(t *testing.T) { compare(t, table) })
	}
}

// TestTablesAreListed checks that each file is in a list, because other files are not compared.
func TestTablesAreListed(t *testing.T) {
	files, err := filepath.Glob("testdata/*.csv")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if filepath.Base(file) == "compile.csv" { // bytes kept between the passes, see TestCompile
			continue
		}
		if !slices.ContainsFunc(tables, func(l table) bool { return l.file == filepath.Base(file) }) {
			t.Errorf("%s is not in the list tables", file)
		}
	}
}

// compare simulates the trainings of a table, and compares the memory of their tensors
// with the table's. Workspaces and rounding by the cache are in neither.
func compare(t *testing.T, table table) {
	t.Helper()
	rows := tabletest.Rows(t, "testdata/"+table.file)
	var sum, worst float64
	kinds := map[string][]float64{}
	for _, row := range rows {
		got := simulated(t, trainingOf(t, row))
		off := float64(got)/float64(row.Int(t, "peak_bytes")) - 1
		t.Logf("%+6.1f %%  %7.0f MiB  %s", 100*off, float64(got)/(1<<20), row)
		sum, worst = sum+math.Abs(off), max(worst, math.Abs(off))
		kinds[kindOf(row)] = append(kinds[kindOf(row)], math.Abs(off))
	}
	for _, k := range slices.Sorted(maps.Keys(kinds)) {
		t.Logf("%s: %d, mean %.1f %%, largest %.1f %%", k, len(kinds[k]), 100*total(kinds[k])/float64(len(kinds[k])), 100*slices.Max(kinds[k]))
	}
	n := float64(len(rows))
	t.Logf("mean error %.1f %%, largest %.1f %%, %g trainings", 100*sum/n, 100*worst, n)
	if sum/n > table.mean || worst > table.largest {
		t.Errorf("off by %.1f %% in the mean, at most %.1f %%; want %g and %g", 100*sum/n, 100*worst, 100*table.mean, 100*table.largest)
	}
}

// simulated returns the peak of a training's tensors in bytes, without workspaces.
func simulated(t *testing.T, c *models.Config) int64 {
	t.Helper()
	got, err := step.Simulate(c, &step.Environment{Name: "plain"})
	if err != nil {
		t.Fatal(c.Name, err)
	}
	return got.Allocated
}

// kindOf names the kind of a row's training, as the summary groups them.
func kindOf(row tabletest.Row) string {
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
