package main

import (
	"fmt"
	"slices"
	"strings"

	"carma/mapper/sim"
	"carma/mapper/sim/pairs"
)

// crossValidate predicts the pairs of each group's tasks by a model that has
// seen none of them. A pair of two groups is predicted twice.
func crossValidate(all []pairs.Pair, group func(pairs.Task) string) pairs.Scores {
	var groups []string
	for _, p := range all {
		groups = append(groups, group(p.A), group(p.B))
	}
	slices.Sort(groups)
	var scores pairs.Scores
	for _, g := range slices.Compact(groups) {
		var seen, held []pairs.Pair
		for _, p := range all {
			if group(p.A) == g || group(p.B) == g {
				held = append(held, p)
			} else {
				seen = append(seen, p)
			}
		}
		m := fit(seen)
		for _, p := range held {
			scores.Add(p, m)
		}
	}
	return scores
}

// line formats a set of scores as in coefficients.go.
func line(title string, s pairs.Scores) string {
	return fmt.Sprintf("%-28s speed |e| median %.3f mean %.3f p90 %.3f bias %+.3f; sum |e| median %.3f mean %.3f; light beside heavy (%d) |e| median %.3f bias %+.3f, the heavy one bias %+.3f",
		title+":", s.Speed.Median(), s.Speed.Mean(), s.Speed.Quantile(0.9), s.Speed.Bias(),
		s.Sum.Median(), s.Sum.Mean(), len(s.Light), s.Light.Median(), s.Light.Bias(), s.Heavy.Bias())
}

// report gives the errors of a model fitted to all pairs, on them and on tasks that it
// has not seen.
func report(all []pairs.Pair, m sim.Model) string {
	return strings.Join([]string{
		line("in sample", pairs.Score(all, m)),
		line("leaving one task out", crossValidate(all, func(t pairs.Task) string { return t.ID })),
		line("leaving one model out", crossValidate(all, func(t pairs.Task) string { return t.Family })),
		line("in sample, steps not known", pairs.Score(withoutSteps(all), m)),
	}, "\n")
}

// shippedErrors gives the errors of the shipped coefficients on any pairs.
func shippedErrors(all []pairs.Pair) string {
	return strings.Join([]string{
		line("shipped coefficients", pairs.Score(all, sim.Fitted)),
		line("the same, steps not known", pairs.Score(withoutSteps(all), sim.Fitted)),
	}, "\n")
}

// withoutSteps returns the same pairs when the tasks' steps are not known.
func withoutSteps(all []pairs.Pair) []pairs.Pair {
	out := slices.Clone(all)
	for i := range out {
		out[i].A.Load.Step, out[i].B.Load.Step = 0, 0
	}
	return out
}
