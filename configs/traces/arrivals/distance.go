package arrivals

import (
	"math"
	"slices"
	"time"

	"carma/configs/traces/joblog"
)

// Gaps returns the times between consecutive arrivals, sorted.
func (l List) Gaps() []time.Duration {
	var gaps []time.Duration
	for i := 1; i < len(l.Arrivals); i++ {
		gaps = append(gaps, l.Arrivals[i].At-l.Arrivals[i-1].At)
	}
	slices.Sort(gaps)
	return gaps
}

// RunTimes returns the known run times, sorted.
func (l List) RunTimes() []time.Duration {
	var runs []time.Duration
	for i := range l.Arrivals {
		if l.Arrivals[i].RunTime != joblog.Unknown {
			runs = append(runs, l.Arrivals[i].RunTime)
		}
	}
	slices.Sort(runs)
	return runs
}

// GPUMix counts tasks by the number of their GPUs.
func (l List) GPUMix() map[int]int {
	mix := map[int]int{}
	for i := range l.Arrivals {
		mix[l.Arrivals[i].GPUs]++
	}
	return mix
}

// KolmogorovSmirnov returns the largest difference between the empirical distribution
// functions of two sorted lists, from 0 to 1, or 0 if a list is empty.
func KolmogorovSmirnov(a, b []time.Duration) float64 {
	if len(a) == 0 || len(b) == 0 {
		return 0
	}
	most, i, j := 0.0, 0, 0
	for i < len(a) && j < len(b) {
		at := min(a[i], b[j])
		for i < len(a) && a[i] == at {
			i++
		}
		for j < len(b) && b[j] == at {
			j++
		}
		most = max(most, math.Abs(float64(i)/float64(len(a))-float64(j)/float64(len(b))))
	}
	return most
}

// TotalVariation returns half the sum of the differences between the shares of two counts,
// from 0 to 1, or 0 if a count is empty.
func TotalVariation(a, b map[int]int) float64 {
	n, m := count(a), count(b)
	if n == 0 || m == 0 {
		return 0
	}
	// These are integers, so the order of a map does not change the sum.
	sum := 0
	for k, v := range a {
		sum += abs(v*m - b[k]*n)
	}
	for k, v := range b {
		if _, both := a[k]; !both {
			sum += v * n
		}
	}
	return float64(sum) / 2 / float64(n) / float64(m)
}

func count(mix map[int]int) int {
	n := 0
	for _, v := range mix {
		n += v
	}
	return n
}

func abs(n int) int { return max(n, -n) }

// chance returns ChanceGaps or ChanceRunTimes of [Fidelity] for lists of n and m values, or
// 0 if a list is empty.
func chance(n, m int) float64 {
	if n == 0 || m == 0 {
		return 0
	}
	return min(1, 1.358*math.Sqrt(float64(n+m)/float64(n)/float64(m)))
}
