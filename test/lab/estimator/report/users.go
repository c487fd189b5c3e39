package main

import (
	"bytes"
	"cmp"
	"fmt"

	"carma/estimator/evaluate"
)

// The tables in this file help users to choose an estimator.

// measuredOn describes the sets of the correction's card for users.
var measuredOn = map[string]string{
	"a100-2024":    "A100, generated networks (GPUMemNet data)",
	"a100-timm":    "A100, networks of timm",
	"real":         "A100, real models, 2024 and 2025",
	"h100-2026-11": "H100, real models, 2026",
	"xmem":         "RTX 3060, RTX 4060, A100, real models (xMem)",
}

// heldOutShort writes one row for each set of rows that were not learned from, as estimator
// carma ships: without the correction. Real models are one set of all families together.
func heldOutShort(out *bytes.Buffer, card *held) {
	fmt.Fprintf(out, "**Networks that were not learned from** (%d folds, a network in one fold at all its batch sizes; real models are left out model by model):\n\n"+
		"| measured on | networks | runs | mean error | median | above the bound | overhead |\n|---|---|---|---|---|---|---|\n", card.Folds)
	for _, s := range card.Sets {
		f := s.Simulated
		if f == nil || f.Bound == nil || s.Corrected == nil && s.Family != "" {
			continue
		}
		fmt.Fprintf(out, "| %s | %s | %d | %s | %s | %s | %s |\n", cmp.Or(measuredOn[s.Environment], s.Environment), cmp.Or(string(s.Family), "all"),
			f.Rows, percent(f.Mean), percent(f.Median), percent(*f.Bound), percent(f.Overhead))
	}
}

// fewShort writes the errors of estimates from the fewest and from the most figures.
func fewShort(out *bytes.Buffer, card *fewCard) {
	fmt.Fprint(out, "\n**A few figures** of a network that was not learned from: parameters, batch size, family, and what the second column names.\n\n"+
		"| networks | known too | runs | mean error | above the bound | overhead |\n|---|---|---|---|---|---|\n")
	line := func(what, known string, f fewFigures) {
		fmt.Fprintf(out, "| %s | %s | %d | %s | %s | %s |\n", what, known, f.Rows, percent(f.Mean), percent(*f.Bound), percent(f.Overhead))
	}
	for _, g := range card.Groups {
		if g.Input != g.Layers {
			continue
		}
		line(string(g.Family), g.known(), g.HeldOut)
		if g.Real != nil {
			line(string(g.Family)+", real", g.known(), *g.Real)
		}
	}
}

// seenShort writes the errors of estimates that earlier runs correct.
func seenShort(out *bytes.Buffer, s *evaluate.Scored) {
	fmt.Fprintf(out, "\n**After earlier runs**, on %d runs of real models measured in `%s`:\n\n"+
		"| estimate | runs | mean error | above the bound | overhead |\n|---|---|---|---|---|\n", s.Trainings, s.Environment)
	for _, s := range append(s.Scores[:1:1], s.Seen...) { // carma's own is the first
		if s.Rows > 0 {
			fmt.Fprintf(out, "| %s | %d | %s | %s | %s |\n", s.Method, s.Rows, percent(s.Mean), percent(s.BoundUnder), percent(s.Overhead))
		}
	}
}
