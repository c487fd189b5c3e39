package main

import (
	"bytes"
	"cmp"
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

// fewGroup is a family of networks of which the same is known.
type fewGroup struct {
	Family  models.Family `json:"family"`
	Input   bool          `json:"input"`
	Layers  bool          `json:"layers"`
	HeldOut fewFigures    `json:"held_out"`
	Real    *fewFigures   `json:"real"`
}

// known names the known facts beside parameters, batch size and family.
func (g *fewGroup) known() string {
	var known []string
	if g.Input {
		known = append(known, "size of a sample")
	}
	if g.Layers {
		known = append(known, "layers")
	}
	return cmp.Or(strings.Join(known, ", "), "-")
}

// fewCard is the card of the few-figures model.
type fewCard struct {
	Folds  int        `json:"folds"`
	Groups []fewGroup `json:"groups"`
}

// readFew reads the card at path. Every group has a bound.
func readFew(path string) (*fewCard, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var card fewCard
	if err := json.Unmarshal(text, &card); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, g := range card.Groups {
		if g.HeldOut.Bound == nil || g.Real != nil && g.Real.Bound == nil {
			return nil, fmt.Errorf("%s: no bound of %s", path, g.Family)
		}
	}
	return &card, nil
}

// few writes the errors of estimates from a few figures.
func few(out *bytes.Buffer, card *fewCard) {
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
		line(string(g.Family), g.known(), g.HeldOut)
		if g.Real != nil {
			line(string(g.Family)+", real", g.known(), *g.Real)
		}
	}
}
