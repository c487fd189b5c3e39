package mapper

import (
	"carma/internal/units"
	"carma/mapper/ledger"
	"carma/mapper/model"
)

// beginCordon returns a cordon that begins now, or nil if c is nil or has expired.
func beginCordon(l *ledger.Ledger, c *model.Cordon) *model.Cordon {
	if c == nil || c.Expired(l.Now()) {
		return nil
	}
	n := *c
	n.Since, n.Until = l.Now(), max(0, n.Until)
	if n.Until > 0 {
		l.SetTimer(n.Until, ledger.Timer{})
	}
	return &n
}

func (s *State) gpusCordoned(ev model.GPUsCordoned) {
	for _, id := range ev.GPUs {
		if g := s.GPU(id); g != nil {
			g.Cordon = beginCordon(s.Ledger, ev.Closure)
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
	s.paused = beginCordon(s.Ledger, ev.Closure)
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

// pauseReason returns a pause of launching as a reason.
func pauseReason(c *model.Cordon, now units.Instant) model.Reason {
	r := model.Reason{Code: model.ReasonPaused, Name: c.By, Text: c.Why}
	if c.Until > 0 {
		r.Span = c.Until.Sub(now)
	}
	return r
}
