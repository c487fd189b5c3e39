package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"

	"carma/configs/models"
)

// figures are the errors on a set of rows that were not learned from. The bound
// is nil if the rows are too few.
type figures struct {
	Rows     int      `json:"rows"`
	Mean     float64  `json:"mean"`
	Median   float64  `json:"median"`
	Under    float64  `json:"under"`
	Bound    *float64 `json:"bound_under"`
	Overhead float64  `json:"bound_overhead"`
}

// octave are the figures at the batch sizes from From to To: of the cleaned rows, and of
// all of them.
type octave struct {
	From    int     `json:"from"`
	To      int     `json:"to"`
	Cleaned figures `json:"cleaned"`
	All     figures `json:"all"`
}

// set is the figures of one family of networks in one environment.
type set struct {
	Environment    string        `json:"environment"`
	Family         models.Family `json:"family"`
	Simulated      *figures      `json:"simulated"`
	SimulatedAll   *figures      `json:"simulated_all"`
	Corrected      *figures      `json:"corrected"`
	CorrectedAll   *figures      `json:"corrected_all"`
	CorrectedBatch []octave      `json:"corrected_by_batch"`
	Tracker        *figures      `json:"tracker"`
	TrackerAll     *figures      `json:"tracker_all"`
}

// held is the card of the correction.
type held struct {
	Folds    int `json:"folds"`
	Cleaning struct {
		Rows, Died, Above int
		OutOfMemory       int `json:"out_of_memory"`
		Unfilled          int
	} `json:"cleaning"`
	Sets []set `json:"sets"`
}

// readHeld reads the card at path.
func readHeld(path string) (*held, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var card held
	if err := json.Unmarshal(text, &card); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &card, nil
}

// heldOut writes the errors on held-out folds.
func heldOut(out *bytes.Buffer, card *held) {
	fmt.Fprintf(out, "### Tested: rows that were not learned from\n\n%d folds; a network is in one fold at all its batch sizes. The bound of a fold is that of the others; "+
		"real models and xMem's runs are left out model by model. A bound above the GPU's memory means all of it.\n\n", card.Folds)
	c := card.Cleaning
	fmt.Fprintf(out, "Of the %d measurements of timm's networks, %d died early and %d were taken beside something else ([the rule](#what-is-learned-from)). Of %d runs that are marked as out of memory, "+
		"%d had less than 20,000 MiB. Rows \"with those\" have the first two again.\n\n", c.Rows, c.Died, c.Above, c.OutOfMemory, c.Unfilled)
	fmt.Fprint(out, "| measured in | networks | `carma` | rows | mean | median | under | 95 % bound: under | overhead |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, s := range card.Sets {
		for _, v := range []struct {
			what string
			f    *figures
		}{
			{"simulated only", s.Simulated}, {"simulated only, with those", s.SimulatedAll}, {"with the correction", s.Corrected},
			{"with the correction, with those", s.CorrectedAll}, {"from the tracked peak", s.Tracker}, {"from the tracked peak, with those", s.TrackerAll},
		} {
			if f := v.f; f != nil && f.Rows > 1 {
				bound, overhead := "-", "-" // too few rows for a bound of their own
				if f.Bound != nil {
					bound, overhead = percent(*f.Bound), percent(f.Overhead)
				}
				fmt.Fprintf(out, "| %s | %s | %s | %d | %s | %s | %s | %s | %s |\n", cmp.Or(places[s.Environment], s.Environment), cmp.Or(string(s.Family), "all"), v.what,
					f.Rows, percent(f.Mean), percent(f.Median), percent(f.Under), bound, overhead)
			}
		}
	}
	byBatch(out, card.Sets)
}

// places are the sets that are not of one environment.
var places = map[string]string{"real": "2024 and 2025, real models", "xmem": "xMem's three GPUs"}

// byBatch writes the bound's figures by batch size.
func byBatch(out *bytes.Buffer, sets []set) {
	fmt.Fprint(out, "\nThe same by batch size, with the correction, for groups of at least 100 rows:\n\n"+
		"| measured in | networks | batch sizes | rows | mean | 95 % bound: under | overhead | with those: rows | under | overhead |\n|---|---|---|---|---|---|---|---|---|---|\n")
	for _, s := range sets {
		for _, o := range s.CorrectedBatch {
			c, all := o.Cleaned, o.All
			if c.Rows >= 100 && c.Bound != nil && all.Bound != nil {
				fmt.Fprintf(out, "| %s | %s | %d to %d | %d | %s | %s | %s | %d | %s | %s |\n", s.Environment, s.Family, o.From, o.To,
					c.Rows, percent(c.Mean), percent(*c.Bound), percent(c.Overhead), all.Rows, percent(*all.Bound), percent(all.Overhead))
			}
		}
	}
}
