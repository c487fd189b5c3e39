package mapper

import "carma/internal/units"

// GPUsCordoned drains GPUs: they keep their tasks and get no new ones, until they are
// opened again. It outlasts restarts, and a GPU that goes and comes back. To open a
// GPU ends what was broken about it as well: who does so has looked at it.
type GPUsCordoned struct {
	At   units.Instant `json:"at"`
	GPUs []GPUID       `json:"gpus"`
	// Closure; nil: they are opened.
	Closure *Cordon `json:"closure,omitempty"`
}

// LaunchingPaused keeps everything waiting that waits, until launching goes on.
// What runs goes on running.
type LaunchingPaused struct {
	At units.Instant `json:"at"`
	// Closure; nil: launching goes on.
	Closure *Cordon `json:"closure,omitempty"`
}

func (e GPUsCordoned) when() units.Instant    { return e.At }
func (e LaunchingPaused) when() units.Instant { return e.At }
func (GPUsCordoned) kind() string             { return "gpus-closed" }
func (LaunchingPaused) kind() string          { return "launching-paused" }
func (GPUsCordoned) about() TaskID            { return 0 }
func (LaunchingPaused) about() TaskID         { return 0 }

// Cordon is who keeps tasks from being launched, since when, and why.
type Cordon struct {
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
func (c *Cordon) over(now units.Instant) bool { return c != nil && c.Until > 0 && c.Until <= now }

// begin is a closure that begins now; nil, if it is none or over already.
func (s *State) begin(c *Cordon) *Cordon {
	if c == nil || c.over(s.now) {
		return nil
	}
	n := *c
	n.Since, n.Until = s.now, max(0, n.Until)
	if n.Until > 0 {
		s.at(n.Until, timer{})
	}
	return &n
}

func (s *State) gpusCordoned(ev GPUsCordoned) {
	for _, id := range ev.GPUs {
		if g := s.byID[id]; g != nil {
			g.Cordon = s.begin(ev.Closure)
			g.markDirty()
			if ev.Closure == nil {
				s.clearFault(g)
			}
			s.forgetMissing(g)
		}
	}
	s.cache.ceilings, s.dirty = [2]ceiling{}, true
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
		if g := s.gpus[i]; g.Cordon.over(s.now) {
			g.Cordon, s.cache.ceilings = nil, [2]ceiling{}
			g.markDirty()
			s.forgetMissing(g)
		}
	}
}

// Paused is why nothing is launched though the engine is up; nil: nobody has
// paused launching.
func (s *State) Paused() *Cordon { return s.paused }

// pausedFor is why nothing is launched.
func (s *State) pausedFor() Reason {
	r := Reason{Code: ReasonPaused, Name: s.paused.By, Text: s.paused.Why}
	if s.paused.Until > 0 {
		r.Span = s.paused.Until.Sub(s.now)
	}
	return r
}
