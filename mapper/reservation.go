package mapper

import (
	"carma/mapper/model"
)

func (s *State) unreserved(ev model.Unreserved) {
	s.placer.dropReservations(func(r *model.Reservation) bool { return r.ID == ev.ID })
}

// dropReservations ends some reservations. Tasks rejected for them are tried again.
func (pl *placer) dropReservations(which func(*model.Reservation) bool) {
	if pl.reserve.Drop(which) {
		pl.dropCache()
		pl.MarkDirty()
	}
}
