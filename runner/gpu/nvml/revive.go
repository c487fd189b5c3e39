//go:build cgo

package nvml

import (
	"slices"
	"time"

	lib "github.com/NVIDIA/go-nvml/pkg/nvml"
)

// A lost GPU is searched for after reviveFirst, then at intervals that double up to
// reviveLast, because initializing the library again interrupts all GPUs for a moment.
const (
	reviveFirst = 30 * time.Second
	reviveLast  = 10 * time.Minute
)

// revive initializes the library again while a GPU is lost, because old handles stay
// invalid after a reset or a reload of the driver.
func (s *Source) revive(now time.Time) {
	gone := s.down != "" || slices.ContainsFunc(s.units, func(u *unit) bool { return u.bad > tolerated })
	switch {
	case !gone:
		s.reviveAt, s.patience = time.Time{}, reviveFirst
		return
	case s.reviveAt.IsZero():
		s.reviveAt = now.Add(reviveFirst) // it may recover on its own
		return
	case now.Before(s.reviveAt):
		return
	}
	s.patience = min(2*s.patience, reviveLast)
	s.reviveAt = now.Add(s.patience)
	if s.down == "" {
		s.release()
		s.lib.Shutdown()
	}
	if ret := s.lib.Init(); ret != lib.SUCCESS {
		s.down = unavailable(ret).Text
		return
	}
	s.down, s.missing, s.checked = "", map[string]bool{}, time.Time{}
	s.handles()
	s.listen()
	for _, u := range s.units {
		u.gpm, u.times = s.newGPM(u), times{}
	}
}

// handles finds the GPUs again. A missing GPU keeps a handle that returns errors.
func (s *Source) handles() {
	for _, c := range s.cards {
		if h, ret := s.lib.DeviceGetHandleByUUID(c.uuid); ret == lib.SUCCESS {
			c.handle = h
		}
		for _, u := range c.units {
			if u.instance < 0 {
				u.handle = c.handle
			} else if h, ret := s.lib.DeviceGetHandleByUUID(u.device.UUID); ret == lib.SUCCESS {
				u.handle = h
			}
		}
	}
}
