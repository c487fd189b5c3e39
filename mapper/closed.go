package mapper

import "carma/internal/units"

// GPUsClosed drains GPUs: they keep their tasks and get no new ones, until they are
// opened again. It outlasts restarts, and a GPU that goes and comes back. To open a
// GPU ends what was broken about it as well: who does so has looked at it.
type GPUsClosed struct {
	At   units.Instant `json:"at"`
	GPUs []GPUID       `json:"gpus"`
	// Closure; nil: they are opened.
	Closure *Closure `json:"closure,omitempty"`
}

// LaunchingPaused keeps everything waiting that waits, until launching goes on.
// What runs goes on running.
type LaunchingPaused struct {
	At units.Instant `json:"at"`
	// Closure; nil: launching goes on.
	Closure *Closure `json:"closure,omitempty"`
}

func (e GPUsClosed) when() units.Instant      { return e.At }
func (e LaunchingPaused) when() units.Instant { return e.At }
func (GPUsClosed) kind() string               { return "gpus-closed" }
func (LaunchingPaused) kind() string          { return "launching-paused" }
func (GPUsClosed) about() TaskID              { return 0 }
func (LaunchingPaused) about() TaskID         { return 0 }

// Closure is who keeps tasks from being launched, since when, and why.
type Closure struct {
	By    string        `json:"by,omitempty"`
	Why   string        `json:"why,omitempty"`
	Since units.Instant `json:"since"`
	// Move has the tasks of a GPU moved to others, without ending them, as these have
	// room and where that can be.
	Move bool `json:"move,omitempty"`
	// Until is when it ends by itself; 0: when somebody ends it.
	Until units.Instant `json:"until,omitempty"`
}

// RuleClosed: a GPU is drained by somebody.
const RuleClosed Rule = "closed"

// over reports whether a closure has ended by itself.
func (c *Closure) over(now units.Instant) bool { return c != nil && c.Until > 0 && c.Until <= now }

// begin is a closure that begins now; nil, if it is none or over already.
func (s *State) begin(c *Closure) *Closure {
	if c == nil || c.over(s.now) {
		return nil
	}
	n := *c
	n.Since, n.Until = s.now, max(0, n.Until)
	if n.Until > 0 {
		s.at(n.Until, deadline{})
	}
	return &n
}

func (s *State) gpusClosed(ev GPUsClosed) {
	for _, id := range ev.GPUs {
		if g := s.byID[id]; g != nil {
			g.Closed = s.begin(ev.Closure)
			g.mark()
			if ev.Closure == nil {
				s.mends(g)
			}
			s.forgetMissing(g)
		}
	}
	s.notes.ceilings, s.dirty = [2]ceiling{}, true
}

func (s *State) launchingPaused(ev LaunchingPaused) {
	s.paused, s.dirty = s.begin(ev.Closure), true
}

// reopen ends the closures whose time is over.
func (s *State) reopen() {
	if s.paused.over(s.now) {
		s.paused = nil
	}
	s.dropReservations(func(r *Reservation) bool { return r.Until <= s.now })
	for i := len(s.gpus) - 1; i >= 0; i-- {
		if g := s.gpus[i]; g.Closed.over(s.now) {
			g.Closed, s.notes.ceilings = nil, [2]ceiling{}
			g.mark()
			s.forgetMissing(g)
		}
	}
}

// Paused is why nothing is launched though the engine is up; nil: nobody has
// paused launching.
func (s *State) Paused() *Closure { return s.paused }

// pausedFor is why nothing is launched.
func (s *State) pausedFor() Reason {
	r := Reason{Code: ReasonPaused, Name: s.paused.By, Text: s.paused.Why}
	if s.paused.Until > 0 {
		r.Span = s.paused.Until.Sub(s.now)
	}
	return r
}
