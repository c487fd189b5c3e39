package mapper

import (
	"carma/mapper/model"
)

func (s *State) unreserved(ev model.Unreserved) {
	s.placer.DropReservations(func(r *model.Reservation) bool { return r.ID == ev.ID })
}
