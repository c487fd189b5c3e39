package sim

import (
	"cmp"
	"slices"

	"carma/internal/units"
)

// How a run begins, in seconds of training or, for short runs, as a share of
// it: the context at once, the network halfway through the start-up, then what
// the first steps take. Frameworks keep what they have once had, so memory is
// at its peak soon and stays there.
const (
	startUp      = 8.0
	startUpShare = 0.04
	growth       = 24.0
	growthShare  = 0.12
)

// networkShare is how much of the memory beside the context is the network
// itself; the rest comes in these parts: the first forward and backward pass
// takes most, later ones what the largest batch and the search for the fastest
// kernels add.
const networkShare = 0.12

var growthParts = []float64{0.40, 0.65, 0.80, 0.90, 0.96, 1}

// Allocation is memory that a task asks for at one point of its run.
type Allocation struct {
	At    float64 // seconds of training
	GPU   int     // of the task's GPUs
	Bytes units.Bytes
}

// TrainsFrom is the point of a run of so many seconds at which its GPUs begin
// to be busy; before, it loads its program and its data.
func TrainsFrom(seconds float64) float64 { return min(startUp, startUpShare*seconds) }

// PeaksAt is the point of such a run from which on its memory does not grow.
func PeaksAt(seconds float64) float64 { return TrainsFrom(seconds) + min(growth, growthShare*seconds) }

// Allocations is a task's memory over its run, in order: the context on each
// GPU, the network, growth to the peak, and then no change. Peaks are by GPU,
// context included; amounts are whole MiB, as frameworks ask for them.
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
