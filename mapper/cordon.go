package mapper

import "carma/internal/units"

// GPUsCordoned cordons GPUs: they keep their tasks and get no new ones until they are
// uncordoned. A cordon survives restarts, and a GPU that disappears and returns. To
// uncordon a GPU also clears its fault: somebody has inspected it.
type GPUsCordoned struct {
	At   units.Instant `json:"at"`
	GPUs []GPUID       `json:"gpus"`
	// Closure is the cordon, or nil to uncordon.
	Closure *Cordon `json:"closure,omitempty"`
}

// LaunchingPaused keeps all waiting tasks waiting until launching resumes. Running tasks
// continue.
type LaunchingPaused struct {
	At units.Instant `json:"at"`
	// Closure describes the pause, or is nil to resume launching.
	Closure *Cordon `json:"closure,omitempty"`
}

func (e GPUsCordoned) when() units.Instant    { return e.At }
func (e LaunchingPaused) when() units.Instant { return e.At }
func (GPUsCordoned) kind() string             { return "gpus-closed" }
func (LaunchingPaused) kind() string          { return "launching-paused" }
func (GPUsCordoned) about() TaskID            { return 0 }
func (LaunchingPaused) about() TaskID         { return 0 }

// Cordon says who keeps tasks from being launched, since when, and why.
type Cordon struct {
	By    string        `json:"by,omitempty"`
	Why   string        `json:"why,omitempty"`
	Since units.Instant `json:"since"`
	// Move moves the tasks of a GPU to others without ending them, when these have room
	// and where it is possible.
	Move bool `json:"move,omitempty"`
	// Until is the instant at which it expires, or 0 if somebody must end it.
	Until units.Instant `json:"until,omitempty"`
}

// RuleClosed: the GPU is cordoned.
const RuleClosed Rule = "closed"

// over reports whether a cordon has expired.
func (c *Cordon) over(now units.Instant) bool { return c != nil && c.Until > 0 && c.Until <= now }

// begin returns a cordon that begins now, or nil if c is nil or has expired.
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
			g.changed()
			if ev.Closure == nil {
				s.clearFault(g)
			}
			s.placer.forgetMissing(g)
		}
	}
	s.capacityChanged()
	s.dirty = true
}

func (s *State) launchingPaused(ev LaunchingPaused) {
	s.paused, s.dirty = s.begin(ev.Closure), true
}

// reopen ends the cordons, pauses and reservations that have expired.
func (s *State) reopen() {
	if s.paused.over(s.now) {
		s.paused = nil
	}
	s.placer.dropReservations(func(r *Reservation) bool { return r.Until <= s.now })
	for i := len(s.gpus) - 1; i >= 0; i-- {
		if g := s.gpus[i]; g.Cordon.over(s.now) {
			g.Cordon = nil
			s.capacityChanged()
			g.changed()
			s.placer.forgetMissing(g)
		}
	}
}

// Paused says why nothing is launched though the engine is up, or returns nil if
// launching is not paused.
func (s *State) Paused() *Cordon { return s.paused }

// pausedFor returns the pause as a reason.
func (s *State) pausedFor() Reason {
	r := Reason{Code: ReasonPaused, Name: s.paused.By, Text: s.paused.Why}
	if s.paused.Until > 0 {
		r.Span = s.paused.Until.Sub(s.now)
	}
	return r
}
