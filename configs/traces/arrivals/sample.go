package arrivals

import (
	"fmt"
	"sort"
	"time"
)

// Window is the part of a list that a sample takes. At least one of Length and Tasks is
// set. The limit that is reached first ends the sample.
type Window struct {
	Start  time.Duration // since the list's first arrival
	Length time.Duration // or 0 for no limit
	Tasks  int           // or 0 for no limit
}

// Sample returns the tasks that arrive in a window, at its start or later, and before its
// end. The first arrival moves to 0.
func (l List) Sample(w Window) (List, error) {
	from := sort.Search(len(l.Arrivals), func(i int) bool { return l.Arrivals[i].At >= w.Start })
	to := len(l.Arrivals)
	if w.Length > 0 {
		to = sort.Search(len(l.Arrivals), func(i int) bool { return l.Arrivals[i].At >= w.Start+w.Length })
	}
	if w.Tasks > 0 {
		to = min(to, from+w.Tasks)
	}
	if from >= to {
		return List{}, fmt.Errorf("no task arrives there; the last arrives %s after the first", l.Span())
	}
	out := List{First: l.First, Arrivals: append([]Arrival(nil), l.Arrivals[from:to]...)}
	out.Sort()
	return out, nil
}

// Fidelity compares a sample with its source: 0 is equal, 1 is completely
// different.
type Fidelity struct {
	// Gaps and RunTimes are Kolmogorov-Smirnov distances: the largest difference
	// between the two shares of values below any bound.
	Gaps     float64 `json:"gaps_ks"`
	RunTimes float64 `json:"run_times_ks"`
	// GPUs is the total variation distance of the numbers of GPUs: half the sum
	// of the differences between their shares.
	GPUs float64 `json:"gpus_tv"`
	// ChanceGaps and ChanceRunTimes are KS distances to compare with. Two samples
	// of these sizes from one distribution exceed them in 5 of 100 cases, by the
	// large-sample formula 1.358 √((n+m)/nm).
	ChanceGaps     float64 `json:"gaps_chance"`
	ChanceRunTimes float64 `json:"run_times_chance"`
}

// Compare compares a sample with its source.
func Compare(sample, source List) Fidelity {
	a, b := sample.Gaps(), source.Gaps()
	x, y := sample.RunTimes(), source.RunTimes()
	return Fidelity{
		Gaps: KolmogorovSmirnov(a, b), ChanceGaps: chance(len(a), len(b)),
		RunTimes: KolmogorovSmirnov(x, y), ChanceRunTimes: chance(len(x), len(y)),
		GPUs: TotalVariation(sample.GPUMix(), source.GPUMix()),
	}
}
