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

// Handed says that the engine has made an attempt's container, or found a place for its pod,
// or is at something that may take long, as pulling its image.
type Handed struct {
	At      units.Instant `json:"at"`
	Task    TaskID        `json:"task"`
	Attempt int           `json:"attempt"`
}

func (e Handed) when() units.Instant { return e.At }
func (Handed) kind() string          { return "handed" }
func (Handed) about() TaskID         { return 0 }

// handing is an attempt that was launched and not handed over.
type handing struct {
	Task    TaskID `json:"task"`
	Attempt int    `json:"attempt"`
}

// handOver notes an attempt that is launched while there is a limit.
func (s *State) handOver(id TaskID, attempt int) {
	if s.opt.LaunchesAtOnce == 0 {
		return
	}
	s.handing = append(slices.DeleteFunc(s.handing, func(h handing) bool { return !s.launches(h) }), handing{id, attempt})
}

func (s *State) handed(ev Handed) {
	s.handing = slices.DeleteFunc(s.handing, func(h handing) bool { return h == handing{ev.Task, ev.Attempt} })
}

// launches reports whether an attempt has neither started nor ended.
func (s *State) launches(h handing) bool {
	t := s.tasks[h.Task]
	return t != nil && t.Phase == Launching && t.Last().N == h.Attempt
}

// handingOver is how many attempts are being handed over.
func (s *State) handingOver() (n int) {
	for _, h := range s.handing {
		if s.launches(h) {
			n++
		}
	}
	return n
}

// handsFull reports whether as many launches as may be are being handed over.
func (s *State) handsFull() bool {
	return s.opt.LaunchesAtOnce > 0 && len(s.handing) >= s.opt.LaunchesAtOnce && s.handingOver() >= s.opt.LaunchesAtOnce
}
