package mapper

import "carma/mapper/model"

// begin returns a cordon that begins now, or nil if c is nil or has expired.
func (s *State) begin(c *model.Cordon) *model.Cordon {
	if c == nil || c.Expired(s.now) {
		return nil
	}
	n := *c
	n.Since, n.Until = s.now, max(0, n.Until)
	if n.Until > 0 {
		s.at(n.Until, timer{})
	}
	return &n
}

func (s *State) gpusCordoned(ev model.GPUsCordoned) {
	for _, id := range ev.GPUs {
		if g := s.byID[id]; g != nil {
			g.Cordon = s.begin(ev.Closure)
			g.Changed()
			if ev.Closure == nil {
				s.clearFault(g)
			}
			s.placer.forgetMissing(g)
		}
	}
	s.capacityChanged()
	s.dirty = true
}

func (s *State) launchingPaused(ev model.LaunchingPaused) {
	s.paused, s.dirty = s.begin(ev.Closure), true
}

// reopen ends the cordons, pauses and reservations that have expired.
func (s *State) reopen() {
	if s.paused.Expired(s.now) {
		s.paused = nil
	}
	s.placer.dropReservations(func(r *model.Reservation) bool { return r.Until <= s.now })
	for i := len(s.gpus) - 1; i >= 0; i-- {
		if g := s.gpus[i]; g.Cordon.Expired(s.now) {
			g.Cordon = nil
			s.capacityChanged()
			g.Changed()
			s.placer.forgetMissing(g)
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
		r.Span = s.paused.Until.Sub(s.now)
	}
	return r
}
