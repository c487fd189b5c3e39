package correct

import (
	"cmp"
	"math"
	"slices"
)

// Run is a measurement of an estimate.
type Run struct {
	// Model names what was estimated. Two runs of a model are at other settings.
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
	// priorRuns is the weight of the shipped spread, as a number of runs. Chosen: after
	// as many runs here, the observed spread counts for half.
	priorRuns = 8
	// runSpread is the standard deviation of the settings of one model around the
	// model's own error, before it was learned here. Measured: 0.047 in the 65 runs of
	// real models of estimates.csv, 0.062 in the 3,290 of the timm collection.
	runSpread = 0.05
	// leastSpread bounds what identical runs can do: samples miss short spikes.
	leastSpread = 0.01
	// leastBound is the smallest learned ln(bound / point); a shipped bound below it
	// stays. The mapper allocates the same above the peak of earlier runs
	// (learnedFactor).
	leastBound = 0.03
	// tails are the degrees of freedom of the errors. Their tails are heavy: in the
	// runs of runSpread, half of the settings are within 0.017 of their model's mean,
	// and one in twenty is off by 0.12. So what is far off counts little, and the
	// bound is farther from the point than a normal distribution's would be.
	tails = 4
	// farthest is the largest error that is one of the estimate. A run that is
	// off by more than a factor of 3 was not of that model or those settings.
	farthest = 1.0986
	// Kept is the number of runs of a model that count, keptModels the number of models:
	// the newest.
	Kept, keptModels = 32, 64
)

// Measures reports whether an error can be one of the estimate.
func Measures(log float64) bool { return math.Abs(log) <= farthest }

// Of returns the correction of an estimate of model. runs are the runs of its group,
// oldest first. bound is ln(shipped bound / point estimate) at 95 %. Without runs the
// estimate is not changed: it returns 0 and bound.
func Of(runs []Run, model string, bound float64) Correction {
	bound = min(max(bound, 1e-4), 3)
	groups := byModel(runs, model)
	c := Correction{Upper: bound}
	if len(groups) == 0 {
		return c
	}
	s := shipped(bound)
	machine, own := s.machine(groups, model)
	for range 2 { // spreads bound how much an outlier adds to them
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

// group are the errors of one model's runs.
type group struct {
	model string
	logs  []float64
}

// byModel sorts runs by model, and a model's by size: their order does not count,
// but only the newest models do, and this one, and of each the newest runs.
func byModel(runs []Run, model string) []group {
	at := map[string]int{} // look-up only
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

// spreads are the variances of the three parts of an error.
type spreads struct{ shift, model, run float64 }

// shipped splits the spread that a bound stands for. Calibration does not separate the
// machine's part from the model's, so each is half of the part that is not the run's.
func shipped(bound float64) spreads {
	all := bound / quantile95(tails)
	run := min(runSpread*runSpread, all*all/2)
	return spreads{shift: (all*all - run) / 2, model: (all*all - run) / 2, run: run}
}

// machine returns the part of all estimates that the runs of models other than
// this one show, and the errors of this one's runs.
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

// learn returns the spreads that the runs show, shrunk towards the spreads in before. s
// are the present spreads: a deviation of more than three of them counts as three.
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
