package server

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"carma/internal/units"
	"carma/runner/api"
)

// TestGPUTable checks the columns for real GPUs, and the mark of a figure that is an upper
// bound.
func TestGPUTable(t *testing.T) {
	a := api.GPU{GPURef: api.GPURef{Index: 0}, Model: "NVIDIA A100", Capacity: int64(40 * units.GiB), SMACT: 0.9, PowerW: 250, TemperatureC: 61, Coarse: true, Sharing: "time-slicing"}
	b := api.GPU{GPURef: api.GPURef{Index: 1}, Model: "NVIDIA A100", Capacity: int64(40 * units.GiB), SMACT: 0.5, PowerW: 100, Sharing: "mps-user"}
	var out bytes.Buffer
	if err := gpuTable([]api.GPU{a, b}, 0, false).Write(&out, 0); err != nil {
		t.Fatal(err)
	}
	want := `GPU  MODEL  RESERVED  USED  TOTAL  SMACT  POWER  SHARING  TEMP  TASKS
  0  A100        0.0   0.0   40.0  ~0.90   250W  turns     61C  -
  1  A100        0.0   0.0   40.0   0.50   100W  users       -  -
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

// TestTableFits checks that the table fits with names of any length, and shows the number of
// every task on a GPU.
func TestTableFits(t *testing.T) {
	long := strings.Repeat("long-name-", 20)
	var gpus []api.GPU
	for i := range 8 {
		g := api.GPU{GPURef: api.GPURef{Index: i, UUID: long}, Model: "NVIDIA H100 80GB HBM3 " + long, Capacity: int64(80 * units.GiB), Reserved: int64(79.5 * float64(units.GiB)), SMACT: 1, PowerW: 700, Sharing: "mps-user"}
		for n := range 3 {
			g.Tasks = append(g.Tasks, api.Resident{Task: int64(100*i + n + 1), Name: long})
		}
		gpus = append(gpus, g)
	}
	gpus[7].TemperatureC, gpus[7].Coarse = 100, true
	for _, width := range []int{80, 81, 100, 132, 200} {
		var b bytes.Buffer
		if err := gpuTable(gpus, width, false).Write(&b, width); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("at %d columns it is %d wide: %s", width, n, line)
			}
		}
		if strings.ContainsAny(b.String(), "\x1b\r") || strings.Count(b.String(), "\n") != 9 {
			t.Errorf("%q", b.String())
		}
		if !strings.Contains(b.String(), "701, 702, 703") && !strings.Contains(b.String(), "703 long") {
			t.Errorf("not every task is there:\n%s", b.String())
		}
	}
}
