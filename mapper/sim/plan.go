package sim

import (
	"cmp"
	"slices"

	"carma/internal/units"
)

// The beginning of a run, in seconds of training or, for short runs, as a share of it:
// the context is allocated at once, the network halfway through the start-up, then the
// memory of the first steps. Frameworks keep memory that they have allocated, so it
// reaches its peak soon and stays there.
const (
	startUp      = 8.0
	startUpShare = 0.04
	growth       = 24.0
	growthShare  = 0.12
)

// networkShare is the share of the network itself in the memory beside the context. The
// rest comes in these parts: the first forward and backward pass takes most, later passes
// add memory for the largest batch and for kernel benchmarking.
const networkShare = 0.12

var growthParts = []float64{0.40, 0.65, 0.80, 0.90, 0.96, 1}

// Allocation is memory that a task allocates at one point of its run.
type Allocation struct {
	At    float64 // index among the task's GPUs
	GPU   int     // of the task's GPUs
	Bytes units.Bytes
}

// TrainsFrom returns the point of a run of that many seconds at which its GPUs become
// busy. Before, it loads its program and its data.
func TrainsFrom(seconds float64) float64 { return min(startUp, startUpShare*seconds) }

// PeaksAt returns the point of such a run after which its memory no longer grows.
func PeaksAt(seconds float64) float64 { return TrainsFrom(seconds) + min(growth, growthShare*seconds) }

// Allocations returns a task's allocations over its run, in order: the context on each
// GPU, the network, growth to the peak, and then no change. Peaks are by GPU, context
// included; amounts are whole MiB, as frameworks allocate them.
func Allocations(seconds float64, context units.Bytes, peaks []units.Bytes) []Allocation {
	begin, grown := TrainsFrom(seconds), min(growth, growthShare*seconds)
	all := make([]Allocation, 0, (2+len(growthParts))*len(peaks))
	for g, peak := range peaks {
		held := units.Bytes(0)
		to := func(at float64, total units.Bytes) {
			total = total / units.MiB * units.MiB
			if total > held {
				all = append(all, Allocation{at, g, total - held})
				held = total
			}
		}
		base := min(context, peak)
		network := base + units.Bytes(networkShare*float64(peak-base))
		to(0, base)
		to(begin/2, network)
		for i, part := range growthParts[:len(growthParts)-1] {
			to(begin+grown*float64(i)/float64(len(growthParts)-1), network+units.Bytes(part*float64(peak-network)))
		}
		to(begin+grown, peak)
	}
	if len(peaks) > 1 {
		slices.SortStableFunc(all, func(a, b Allocation) int { return cmp.Compare(a.At, b.At) })
	}
	return all
}
