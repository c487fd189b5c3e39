package arrivals

import (
	"fmt"
	"sort"
	"time"
)

// Window says which part of a list a sample is. Of Length and Tasks one or
// both are set; what is reached first ends the sample.
type Window struct {
	Start  time.Duration // since the list's first arrival
	Length time.Duration // 0: up to the end
	Tasks  int           // 0: all
}

// Sample is the part of a list that a window shows: what arrives at its start
// or later, before its end. Its first arrival becomes the beginning.
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

// Fidelity tells how like its source a sample is: 0 is alike, 1 nothing in
// common.
type Fidelity struct {
	// Gaps and RunTimes are Kolmogorov-Smirnov distances: the largest
	// difference between the shares of the two that are below any value.
	Gaps     float64 `json:"gaps_ks"`
	RunTimes float64 `json:"run_times_ks"`
	// GPUs is the total variation distance of the numbers of GPUs: half the
	// sum of the differences of their shares.
	GPUs float64 `json:"gpus_tv"`
	// Chance is what a KS distance between two samples of these sizes drawn
	// from the same distribution exceeds in 5 of 100 cases, of gaps and of run
	// times, by the large-sample formula 1.358 √((n+m)/nm).
	ChanceGaps     float64 `json:"gaps_chance"`
	ChanceRunTimes float64 `json:"run_times_chance"`
}

// Compare tells how like its source a sample is.
func Compare(sample, source List) Fidelity {
	a, b := sample.Gaps(), source.Gaps()
	x, y := sample.RunTimes(), source.RunTimes()
	return Fidelity{
		Gaps: KolmogorovSmirnov(a, b), ChanceGaps: chance(len(a), len(b)),
		RunTimes: KolmogorovSmirnov(x, y), ChanceRunTimes: chance(len(x), len(y)),
		GPUs: TotalVariation(sample.GPUMix(), source.GPUMix()),
	}
}
