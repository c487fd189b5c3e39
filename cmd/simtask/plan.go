package main

import (
	"cmp"
	"slices"

	"carma/mapper"
)

// action is what happens at one point of a run.
type action int

// The actions, in the order they are done at the same point.
const (
	alloc action = iota
	train        // the GPUs begin to be busy
	hang         // they stop being busy, for good
	fail         // the program raises an error
	end
)

type event struct {
	at     float64 // seconds of training
	action action
	gpu    int
	bytes  mapper.Bytes
}

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

// plan is all that happens in a run, in order.
func (j job) plan() []event {
	begin := min(startUp, startUpShare*j.seconds)
	grown := min(growth, growthShare*j.seconds)
	var events []event
	for g, peak := range j.peaks {
		held := mapper.Bytes(0)
		to := func(at float64, total mapper.Bytes) {
			total = total / mapper.MiB * mapper.MiB // frameworks take whole MiB
			if total > held {
				events = append(events, event{at, alloc, g, total - held})
				held = total
			}
		}
		base := min(j.context, peak)
		rest := float64(peak - base)
		network := base + mapper.Bytes(networkShare*rest)
		to(0, base)
		to(begin/2, network)
		for i, part := range growthParts[:len(growthParts)-1] {
			to(begin+grown*float64(i)/float64(len(growthParts)-1), network+mapper.Bytes(part*float64(peak-network)))
		}
		to(begin+grown, peak)
	}
	events = append(events, event{at: begin, action: train})
	if j.hang {
		events = append(events, event{at: begin + grown, action: hang})
	}
	if j.failAt <= j.seconds {
		events = append(events, event{at: j.failAt, action: fail})
	}
	events = append(events, event{at: j.seconds, action: end})
	slices.SortStableFunc(events, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.action, b.action))
	})
	return events
}
