package attempt

import (
	"slices"

	"carma/mapper/model"
)

// A busy engine, such as a cluster's, keeps launches in a queue of its own. Tasks there
// are already placed: no other task can go before them, and they hold memory. So the
// option LaunchesAtOnce limits the launches in flight. The other tasks stay in carma's
// queue, where a task of higher priority goes before them and a stop costs nothing.

// inflightLaunch is an attempt that was launched and not yet accepted by the engine.
type inflightLaunch struct {
	Task    model.TaskID `json:"task"`
	Attempt int          `json:"attempt"`
}

// beginLaunch records a launch in flight if there is a limit.
func (at *Attempts) beginLaunch(id model.TaskID, attempt int) {
	if at.Options().LaunchesAtOnce == 0 {
		return
	}
	at.inflight = append(slices.DeleteFunc(at.inflight, func(h inflightLaunch) bool { return !at.inFlight(h) }), inflightLaunch{id, attempt})
}

// LaunchAccepted records that the engine has accepted a launch, which is no longer in
// flight.
func (at *Attempts) LaunchAccepted(ev model.LaunchAccepted) {
	at.inflight = slices.DeleteFunc(at.inflight, func(h inflightLaunch) bool { return h == inflightLaunch{ev.Task, ev.Attempt} })
}

// inFlight reports whether an attempt has neither started nor ended.
func (at *Attempts) inFlight(h inflightLaunch) bool {
	t := at.TaskByID(h.Task)
	return t != nil && t.Phase == model.Launching && t.Last().N == h.Attempt
}

// InFlight returns the number of launches in flight.
func (at *Attempts) InFlight() (n int) {
	for _, h := range at.inflight {
		if at.inFlight(h) {
			n++
		}
	}
	return n
}

// LimitReached reports whether the launches in flight have reached the limit.
func (at *Attempts) LimitReached() bool {
	return at.Options().LaunchesAtOnce > 0 && len(at.inflight) >= at.Options().LaunchesAtOnce && at.InFlight() >= at.Options().LaunchesAtOnce
}
