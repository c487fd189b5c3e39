package models_test

import (
	"slices"
	"strings"
	"testing"

	"carma/configs/models"
)

const series = `{"schema": 1, "name": "series", "family": "other", "train": {"batch": 4}, "inputs": [{"shape": [50, 12]}], "layers": [
	LAYER, {"type": "linear", "out": [50, 3], "params": [120, 3]}]}`

// TestCell: a recurrent layer may be of the type of its cell, and gets the parameters
// that PyTorch's has: 4*20*(12+20+2) and 4*20*(40+20+2) for each direction.
func TestCell(t *testing.T) {
	for layer, want := range map[string]int64{
		`{"type": "LSTM", "out": [50, 20]}`:                                                                            4 * 20 * (12 + 20 + 2),
		`{"type": "gru", "out": [50, 20], "cell": {"kind": "gru", "hidden": 20}}`:                                      3 * 20 * (12 + 20 + 2),
		`{"type": "recurrent", "out": [50, 40], "cell": {"kind": "Lstm", "hidden": 20, "layers": 2, "directions": 2}}`: 2*4*20*(12+20+2) + 2*4*20*(40+20+2),
		`{"type": "lstm", "out": [50, 8], "cell": {"kind": "lstm", "hidden": 20, "projection": 8}}`:                    4*20*(12+8+2) + 8*20,
	} {
		c, err := models.Read("x", strings.NewReader(strings.Replace(series, "LAYER", layer, 1)))
		if err != nil {
			t.Fatal(layer, err)
		}
		l := &c.Layers[0]
		if l.Type != models.Recurrent || l.Parameters() != want || !slices.Contains(models.Cells(), l.Cell.Kind) {
			t.Errorf("%s: %+v, cell %+v, %d parameters, want %d", layer, l, l.Cell, l.Parameters(), want)
		}
		var b strings.Builder
		if err := c.Write(&b); err != nil {
			t.Fatal(err)
		}
		if again, err := models.Read("x", strings.NewReader(b.String())); err != nil || again.Hash() != c.Hash() {
			t.Errorf("%s does not come back: %v", layer, err)
		}
	}
}

func TestCellRefused(t *testing.T) {
	for layer, want := range map[string]string{
		`{"type": "recurrent", "out": [50, 20], "cell": {"kind": "lsmt", "hidden": 20}}`:                 "nearest: lstm",
		`{"type": "linear", "out": [50, 20], "cell": {"kind": "lstm", "hidden": 20}}`:                    "only a recurrent layer",
		`{"type": "gru", "out": [50, 20], "cell": {"kind": "gru", "hidden": 0}}`:                         "it is 1 to 2^24",
		`{"type": "gru", "out": [50, 20], "cell": {"kind": "gru", "hidden": 20, "directions": 3}}`:       "it is 1 or 2",
		`{"type": "gru", "out": [50, 20], "cell": {"kind": "gru", "hidden": 20, "projection": 4}}`:       "only of an lstm",
		`{"type": "lstm", "out": [50, 30], "cell": {"kind": "lstm", "hidden": 20, "directions": 2}}`:     "no multiple",
		`{"type": "lstm", "out": [50, 20], "cell": {"kind": "lstm", "hidden": 20, "layers": 1000}}`:      "it is 1 to 256",
		`{"type": "lstm", "out": [50, 20], "cell": {"kind": "lstm", "hidden": 20, "bidirectional": 1}}`:  "bidirectional",
		`{"type": "lstm", "out": [50, 20], "cell": {"kind": "lstm", "hidden": 20, "dropout": "always"}}`: "dropout",
	} {
		_, err := models.Read("x", strings.NewReader(strings.Replace(series, "LAYER", layer, 1)))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", layer, err, want)
		}
	}
}
