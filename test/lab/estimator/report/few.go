package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"carma/configs/models"
)

// fewFigures are the errors of the few-figures model.
type fewFigures struct {
	figures
	Died int     `json:"out_of_memory"`
	Told float64 `json:"out_of_memory_told"`
}

// few writes the errors of estimates from a few figures.
func few(out *bytes.Buffer, path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var card struct {
		Folds  int `json:"folds"`
		Groups []struct {
			Family  models.Family `json:"family"`
			Input   bool          `json:"input"`
			Layers  bool          `json:"layers"`
			HeldOut fewFigures    `json:"held_out"`
			Real    *fewFigures   `json:"real"`
		} `json:"groups"`
	}
	if err := json.Unmarshal(text, &card); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	fmt.Fprintf(out, "\n### Tested: a few figures of a network that was not learned from\n\n"+
		"Parameters, batch size and family are known, and what the second column names. Generated networks and timm: %d folds, a network in one fold at all its batch sizes. "+
		"Real models: none was learned from.\n\n", card.Folds)
	fmt.Fprint(out, "| networks | known too | rows | mean | median | under | 95 % bound: under | overhead | out of memory: runs, told by the bound |\n|---|---|---|---|---|---|---|---|---|\n")
	line := func(what, known string, f fewFigures) {
		died := "-"
		if f.Died > 0 {
			died = fmt.Sprintf("%d, %s", f.Died, percent(f.Told))
		}
		fmt.Fprintf(out, "| %s | %s | %d | %s | %s | %s | %s | %s | %s |\n", what, known, f.Rows, percent(f.Mean), percent(f.Median), percent(f.Under), percent(*f.Bound), percent(f.Overhead), died)
	}
	for _, g := range card.Groups {
		var known []string
		if g.Input {
			known = append(known, "size of a sample")
		}
		if g.Layers {
			known = append(known, "layers")
		}
		too := strings.Join(known, ", ")
		if too == "" {
			too = "-"
		}
		if g.HeldOut.Bound == nil || g.Real != nil && g.Real.Bound == nil {
			return fmt.Errorf("%s: no bound of %s", path, g.Family)
		}
		line(string(g.Family), too, g.HeldOut)
		if g.Real != nil {
			line(string(g.Family)+", real", too, *g.Real)
		}
	}
	return nil
}
