package mapper

import (
	"carma/mapper/ledger"
	"carma/mapper/model"
)

// begin returns a cordon that begins now, or nil if c is nil or has expired.
func (s *State) begin(c *model.Cordon) *model.Cordon {
	if c == nil || c.Expired(s.Now()) {
		return nil
	}
	n := *c
	n.Since, n.Until = s.Now(), max(0, n.Until)
	if n.Until > 0 {
		s.SetTimer(n.Until, ledger.Timer{})
	}
	return &n
}

func (s *State) gpusCordoned(ev model.GPUsCordoned) {
	for _, id := range ev.GPUs {
		if g := s.GPU(id); g != nil {
			g.Cordon = s.begin(ev.Closure)
			g.Changed()
			if ev.Closure == nil {
				s.observer.ClearFault(g)
			}
			s.placer.ForgetMissing(g)
		}
	}
	s.CapacityChanged()
	s.MarkDirty()
}

func (s *State) launchingPaused(ev model.LaunchingPaused) {
	s.paused = s.begin(ev.Closure)
	s.MarkDirty()
}

func (s *State) engineChanged(ev model.EngineChanged) {
	s.breakers.EngineChanged(ev.Up, ev.Reason)
	s.MarkDirty()
}

// reopen ends the cordons, pauses and reservations that have expired.
func (s *State) reopen() {
	if s.paused.Expired(s.Now()) {
		s.paused = nil
	}
	s.placer.DropReservations(func(r *model.Reservation) bool { return r.Until <= s.Now() })
	for i := len(s.GPUList()) - 1; i >= 0; i-- {
		if g := s.GPUList()[i]; g.Cordon.Expired(s.Now()) {
			g.Cordon = nil
			s.CapacityChanged()
			g.Changed()
			s.placer.ForgetMissing(g)
		}
	}
}

// Paused says why nothing is launched though the engine is up, or returns nil if
// launching is not paused.
func (s *State) Paused() *model.Cordon { return s.paused }

// pausedFor returns the pause as a reason.
func (s *State) pausedFor() model.Reason {
	r := model.Reason{Code: model.ReasonPaused, Name: s.paused.By, Text: s.paused.Why}
	if s.paused.Until > 0 {
		r.Span = s.paused.Until.Sub(s.Now())
	}
	return r
}
