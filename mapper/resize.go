package mapper

import (
	"carma/mapper/model"
)

// resize changes the allocation of a running task if its machine has room. Otherwise
// nothing changes.
func (s *State) resize(t *model.Task, ask model.HostAsk) {
	share, no := s.reserve.ResizedShare(t, ask)
	if s.Recorded() != nil {
		d, ok := s.Recorded().Resize(t.ID)
		if !ok {
			return
		}
		share, no = d.Host, model.Reason{}
	}
	if no.Code != "" {
		return
	}
	t.HostMem, t.HostReserve, t.CPUs = ask.Memory, ask.Reserve, ask.CPUs
	t.Request.Normalize()
	s.users.RebookHost(t, share)
	s.Decide(model.Resize{Task: t.ID, Attempt: t.Current().N, Host: share})
}
