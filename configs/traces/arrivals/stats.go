package arrivals

import (
	"math"
	"time"

	"carma/configs/traces/joblog"
)

// Spread describes a sorted list of times.
type Spread struct {
	Count                               int
	Min, P5, Median, Mean, P95, Longest time.Duration
}

// SpreadOf describes a sorted list. All fields are 0 if the list is empty. A percentile is
// the smallest value that is not below the given percentage of all values.
func SpreadOf(sorted []time.Duration) Spread {
	n := len(sorted)
	if n == 0 {
		return Spread{}
	}
	sum := 0.0 // the nanoseconds of a million jobs could overflow
	for _, v := range sorted {
		sum += v.Seconds()
	}
	at := func(p float64) time.Duration { return sorted[max(0, int(math.Ceil(p*float64(n)))-1)] }
	return Spread{
		Count: n, Min: sorted[0], P5: at(0.05), Median: at(0.5), P95: at(0.95), Longest: sorted[n-1],
		Mean: time.Duration(sum / float64(n) * float64(time.Second)).Round(time.Millisecond),
	}
}

// Work returns the GPU time of all tasks with a known run time, in seconds.
func (l List) Work() float64 {
	sum := 0.0
	for i := range l.Arrivals {
		if a := &l.Arrivals[i]; a.RunTime != joblog.Unknown {
			sum += float64(a.GPUs) * a.RunTime.Seconds()
		}
	}
	return sum
}

// Load returns the offered load on a number of GPUs: the GPU time of all tasks divided by
// the GPU time from the first arrival to the last. At a load of 1 the GPUs can just do
// the work with one task per GPU. Load is 0 if all tasks arrive at once.
func (l List) Load(gpus int) float64 {
	if l.Span() == 0 {
		return 0
	}
	return l.Work() / l.Span().Seconds() / float64(gpus)
}

// Series is the load over time, in equal bins from the first arrival to the last
// end or the last arrival, whichever is later.
type Series struct {
	Bin      time.Duration // length of one bin
	Arrivals []int         // tasks that arrive in each bin
	// Demand is the mean number of busy GPUs in each bin, if every task started on arrival.
	Demand []float64
}

// Over computes the load over time in a number of bins.
func (l List) Over(bins int) Series {
	end := time.Second
	for i := range l.Arrivals {
		end = max(end, l.Arrivals[i].At+max(0, l.Arrivals[i].RunTime))
	}
	s := Series{Bin: end/time.Duration(bins) + 1, Arrivals: make([]int, bins), Demand: make([]float64, bins)}
	// change is the change in the number of busy GPUs at the bins' edges, for tasks that
	// fill whole bins.
	change := make([]float64, bins+1)
	for i := range l.Arrivals {
		a := &l.Arrivals[i]
		first := int(a.At / s.Bin)
		s.Arrivals[first]++
		if a.RunTime <= 0 {
			continue
		}
		gpus, stop := float64(a.GPUs), a.At+a.RunTime
		last := int(stop / s.Bin)
		if first == last {
			s.Demand[first] += gpus * float64(a.RunTime) / float64(s.Bin)
			continue
		}
		s.Demand[first] += gpus * float64(time.Duration(first+1)*s.Bin-a.At) / float64(s.Bin)
		s.Demand[last] += gpus * float64(stop-time.Duration(last)*s.Bin) / float64(s.Bin)
		change[first+1] += gpus
		change[last] -= gpus
	}
	busy := 0.0
	for i := range s.Demand {
		busy += change[i]
		s.Demand[i] += busy
	}
	return s
}
