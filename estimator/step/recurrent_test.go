package step_test

import (
	"fmt"
	"strings"
	"testing"

	"carma/configs/models"
	"carma/estimator/networks/zoo"
	"carma/estimator/step"
)

// recurrentOf is the training of a row of testdata/recurrent.csv.
func recurrentOf(t *testing.T, row map[string]string) (*models.Config, error) {
	var sizes []string
	for _, name := range []string{"vocabulary", "features", "input", "hidden", "layers", "directions", "projection", "classes", "dropout"} {
		if row[name] != "" {
			sizes = append(sizes, fmt.Sprintf("%s=%s", name, row[name]))
		}
	}
	return zoo.Build(row["model"]+":"+strings.Join(sizes, ","), settingsIn(t, row))
}

// TestRecurrent compares the simulated step with what PyTorch allocates for nn.LSTM and
// nn.GRU. Neither has cuDNN's reserve: fake tensors do not know it.
func TestRecurrent(t *testing.T) {
	compare(t, "testdata/recurrent.csv", 0.02, 0.04, func(row map[string]string) (*models.Config, error) {
		c, err := recurrentOf(t, row)
		if err != nil {
			return nil, err
		}
		for i := range c.Layers {
			if l := &c.Layers[i]; l.Type == models.Recurrent {
				l.Cell, l.Keeps = nil, &models.Keeps{Inputs: []int{0}, Output: true}
			}
		}
		return c, nil
	})
}

// TestReserve: the two sizes of cuDNN's reserve that are known (pytorch/pytorch issue
// 2895). Both are of 4 layers of 320, and 25,000 samples x steps.
func TestReserve(t *testing.T) {
	for kind, want := range map[string]int64{"lstm": 736_000_000, "gru": 864_000_000} {
		cell := models.Cell{Kind: kind, Hidden: 320, Layers: 4}
		if n, masks := cell.Reserve(25_000 * 320); 4*n+masks != want {
			t.Errorf("%s: %d bytes, want %d", kind, 4*n+masks, want)
		}
		row := map[string]string{"model": kind, "features": "123", "hidden": "320", "layers": "4", "classes": "10", "seq": "1000", "batch": "25"}
		c, err := recurrentOf(t, row)
		if err != nil {
			t.Fatal(err)
		}
		// A head of 10 classes makes the parameters of the report.
		if params := map[string]int64{"lstm": 3038090, "gru": 2279370}[kind]; c.Params() != params {
			t.Errorf("%s has %d parameters, want %d", kind, c.Params(), params)
		}
		whole := allocated(t, c)
		for i := range c.Layers {
			if l := &c.Layers[i]; l.Type == models.Recurrent {
				l.Cell, l.Keeps = nil, &models.Keeps{Inputs: []int{0}, Output: true}
			}
		}
		if more := whole - allocated(t, c); more < want || more > want+want/50 {
			t.Errorf("%s: the step has %d bytes more, want the reserve of %d", kind, more, want)
		}
	}
}

func allocated(t *testing.T, c *models.Config) int64 {
	t.Helper()
	got, err := step.Simulate(c, &step.Environment{Name: "plain"})
	if err != nil {
		t.Fatal(err)
	}
	return got.Allocated
}
