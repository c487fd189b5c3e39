package correct

import (
	"cmp"
	"math"
	"slices"
)

// Run is an estimate's measured error.
type Run struct {
	// Model is the name of the estimated model. Two runs of a model must have different
	// settings.
	Model string
	// Log is the logarithm of measured over estimated memory.
	Log float64
}

// Correction is the correction of a model's next estimate by the runs of a group.
type Correction struct {
	// Log is the logarithm of the factor on the point. Upper is the logarithm of the
	// factor from the point to the bound, at least Log. Both are relative to the
	// uncorrected point.
	Log, Upper float64
	// Same counts the runs of the model that were used, Others the runs of other models.
	Same, Others int
}

const (
	// priorRuns is the weight of the shipped spread, as a number of runs: after that many
	// runs here, the observed spread counts for half. The value was chosen, not measured.
	priorRuns = 8
	// runSpread is the standard deviation of one model's settings around the model's own
	// error, before runs here. Measured: 0.047 in the 65 runs of real models of
	// estimates.csv, 0.062 in the 3,290 of the timm collection.
	runSpread = 0.05
	// leastSpread is the smallest spread, even of identical runs: samples miss short spikes.
	leastSpread = 0.01
	// leastBound is the smallest learned ln(bound / point). A smaller shipped bound stays as
	// it is. The mapper allocates the same amount above the peak of earlier runs
	// (learnedFactor).
	leastBound = 0.03
	// tails are the degrees of freedom of the errors. Their tails are heavy: in the runs of
	// runSpread, half of the settings are within 0.017 of their model's mean, and one in
	// twenty is off by 0.12. So outliers count little, and the bound is farther from the
	// point than with a normal distribution.
	tails = 4
	// farthest is the largest plausible error of an estimate. A run that is off by more than
	// a factor of 3 was of another model or other settings.
	farthest = 1.0986
	// Kept is the largest number of runs of a model that count, keptModels the number of
	// models; the newest are used.
	Kept, keptModels = 32, 64
)

// Measures reports whether an error is plausible for an estimate.
func Measures(log float64) bool { return math.Abs(log) <= farthest }

// Of returns the correction of an estimate of model. runs are the runs of its group,
// oldest first. bound is ln(shipped bound / point estimate) at 95 %. Without runs it
// returns 0 and bound, which change nothing.
func Of(runs []Run, model string, bound float64) Correction {
	bound = min(max(bound, 1e-4), 3)
	groups := byModel(runs, model)
	c := Correction{Upper: bound}
	if len(groups) == 0 {
		return c
	}
	s := shipped(bound)
	machine, own := s.machine(groups, model)
	for range 2 { // the spreads limit the effect of an outlier on themselves
		s = s.learn(shipped(bound), groups, machine)
		machine, own = s.machine(groups, model)
	}
	prior := normal{machine.mean, machine.variance + s.model}
	for _, g := range groups {
		if g.model != model {
			c.Others += len(g.logs)
		}
	}
	c.Same = len(own)
	is := settle(prior, observed(own, s.run))
	c.Log = is.mean
	c.Upper = c.Log + max(quantile95(tails)*math.Sqrt(is.variance+s.run), min(bound, leastBound))
	return c
}

// group contains the errors of one model's runs.
type group struct {
	model string
	logs  []float64
}

// byModel groups the newest runs by model, and sorts each group by size, so that the
// order of runs does not matter. It keeps the newest models and the given one, and the
// newest runs of each.
func byModel(runs []Run, model string) []group {
	at := map[string]int{} // only for look-up
	var groups []group
	for _, r := range slices.Backward(runs) {
		if !Measures(r.Log) || math.IsNaN(r.Log) {
			continue
		}
		i, ok := at[r.Model]
		if !ok && len(groups) >= keptModels && r.Model != model {
			continue
		}
		if !ok {
			i = len(groups)
			at[r.Model], groups = i, append(groups, group{model: r.Model})
		}
		if len(groups[i].logs) < Kept {
			groups[i].logs = append(groups[i].logs, r.Log)
		}
	}
	slices.SortFunc(groups, func(a, b group) int { return cmp.Compare(a.model, b.model) })
	for i := range groups {
		slices.Sort(groups[i].logs)
	}
	return groups
}

// spreads contains the variances of the three parts of an error.
type spreads struct{ shift, model, run float64 }

// shipped splits the spread that a bound implies. Calibration does not separate the
// machine's part from the model's, so each is half of the part that does not belong to
// the run.
func shipped(bound float64) spreads {
	all := bound / quantile95(tails)
	run := min(runSpread*runSpread, all*all/2)
	return spreads{shift: (all*all - run) / 2, model: (all*all - run) / 2, run: run}
}

// machine returns the machine's part of all errors, from the runs of models other than
// this one, and the errors of this model's runs.
func (s spreads) machine(groups []group, model string) (normal, []float64) {
	var others []normal
	var own []float64
	for i := range groups {
		g := &groups[i]
		if g.model == model {
			own = g.logs
			continue
		}
		seen := settle(normal{0, math.Inf(1)}, observed(g.logs, s.run))
		others = append(others, normal{seen.mean, seen.variance + s.model})
	}
	return settle(normal{0, s.shift}, others), own
}

// learn returns the spreads observed in the runs, shrunk towards the spreads in before. s
// are the present spreads: larger deviations than three of them count as three.
func (s spreads) learn(before spreads, groups []group, machine normal) spreads {
	run, runs := priorRuns*before.run, float64(priorRuns)
	model, models := priorRuns*before.model, float64(priorRuns)
	for i := range groups {
		g := &groups[i]
		mean := settle(normal{0, math.Inf(1)}, observed(g.logs, s.run)).mean
		for _, x := range g.logs {
			run += min((x-mean)*(x-mean), 9*s.run)
		}
		n := float64(len(g.logs))
		runs += n - 1
		off := mean - machine.mean
		model += max(0, min(off*off, 9*(s.model+s.run/n))-s.run/n)
		models++
	}
	return spreads{shift: before.shift, model: model / models, run: max(run/runs, leastSpread*leastSpread*min(1, before.run/(runSpread*runSpread)))}
}
