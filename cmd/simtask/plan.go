package main

import (
	"cmp"
	"slices"

	"carma/internal/units"

	"carma/mapper/sim"
)

// action is an action at one point of a run.
type action int

// The actions, in the order in which they happen at the same point.
const (
	alloc action = iota
	train        // the GPUs become busy
	hang         // the GPUs stop being busy, permanently
	fail         // the program raises an error
	end
)

type event struct {
	at     float64 // seconds of training
	action action
	gpu    int
	bytes  units.Bytes
}

// plan returns all actions of a run, in order.
func (j job) plan() []event {
	var events []event
	for _, a := range sim.Allocations(j.seconds, j.context, j.peaks) {
		events = append(events, event{a.At, alloc, a.GPU, a.Bytes})
	}
	events = append(events, event{at: sim.TrainsFrom(j.seconds), action: train})
	if j.hang {
		events = append(events, event{at: sim.PeaksAt(j.seconds), action: hang})
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
