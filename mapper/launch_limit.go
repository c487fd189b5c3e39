package mapper

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
func (s *State) beginLaunch(id model.TaskID, attempt int) {
	if s.Ledger.Options().LaunchesAtOnce == 0 {
		return
	}
	s.inflight = append(slices.DeleteFunc(s.inflight, func(h inflightLaunch) bool { return !s.launches(h) }), inflightLaunch{id, attempt})
}

func (s *State) launchAccepted(ev model.LaunchAccepted) {
	s.inflight = slices.DeleteFunc(s.inflight, func(h inflightLaunch) bool { return h == inflightLaunch{ev.Task, ev.Attempt} })
}

// launches reports whether an attempt has neither started nor ended.
func (s *State) launches(h inflightLaunch) bool {
	t := s.TaskByID(h.Task)
	return t != nil && t.Phase == model.Launching && t.Last().N == h.Attempt
}

// inflightLaunches returns the number of launches in flight.
func (s *State) inflightLaunches() (n int) {
	for _, h := range s.inflight {
		if s.launches(h) {
			n++
		}
	}
	return n
}

// launchLimitReached reports whether the launches in flight have reached the limit.
func (s *State) launchLimitReached() bool {
	return s.Ledger.Options().LaunchesAtOnce > 0 && len(s.inflight) >= s.Ledger.Options().LaunchesAtOnce && s.inflightLaunches() >= s.Ledger.Options().LaunchesAtOnce
}
