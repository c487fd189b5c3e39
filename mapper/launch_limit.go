package mapper

import (
	"slices"

	"carma/internal/units"
)

// An engine that has much to do, such as a cluster's, lets launches wait in a queue of its
// own. What waits there is decided: nobody goes before it, and it holds its memory. So only
// some launches are handed over at a time, where the option LaunchesAtOnce says so; the
// others stay in carma's queue, where a task of higher priority passes them and a stop costs
// nothing.

// LaunchAccepted says that the engine has made an attempt's container, or found a place for its pod,
// or is at something that may take long, as pulling its image.
type LaunchAccepted struct {
	At      units.Instant `json:"at"`
	Task    TaskID        `json:"task"`
	Attempt int           `json:"attempt"`
}

func (e LaunchAccepted) when() units.Instant { return e.At }
func (LaunchAccepted) kind() string          { return "handed" }
func (LaunchAccepted) about() TaskID         { return 0 }

// inflight is an attempt that was launched and not handed over.
type inflightLaunch struct {
	Task    TaskID `json:"task"`
	Attempt int    `json:"attempt"`
}

// beginLaunch notes an attempt that is launched while there is a limit.
func (s *State) beginLaunch(id TaskID, attempt int) {
	if s.opt.LaunchesAtOnce == 0 {
		return
	}
	s.inflight = append(slices.DeleteFunc(s.inflight, func(h inflightLaunch) bool { return !s.launches(h) }), inflightLaunch{id, attempt})
}

func (s *State) launchAccepted(ev LaunchAccepted) {
	s.inflight = slices.DeleteFunc(s.inflight, func(h inflightLaunch) bool { return h == inflightLaunch{ev.Task, ev.Attempt} })
}

// launches reports whether an attempt has neither started nor ended.
func (s *State) launches(h inflightLaunch) bool {
	t := s.tasks[h.Task]
	return t != nil && t.Phase == Launching && t.Last().N == h.Attempt
}

// inflightLaunches is how many attempts are being handed over.
func (s *State) inflightLaunches() (n int) {
	for _, h := range s.inflight {
		if s.launches(h) {
			n++
		}
	}
	return n
}

// launchLimitReached reports whether as many launches as may be are being handed over.
func (s *State) launchLimitReached() bool {
	return s.opt.LaunchesAtOnce > 0 && len(s.inflight) >= s.opt.LaunchesAtOnce && s.inflightLaunches() >= s.opt.LaunchesAtOnce
}
