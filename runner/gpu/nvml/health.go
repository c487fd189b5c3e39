//go:build cgo

package nvml

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	lib "github.com/NVIDIA/go-nvml/pkg/nvml"
)

// listen registers for the errors that the driver reports as critical. Without it, only
// errors of calls show a fault.
func (s *Source) listen() {
	set, ret := s.lib.EventSetCreate()
	if ret != lib.SUCCESS {
		s.note("the driver's error events cannot be watched: " + message(ret))
		return
	}
	s.events = set
	for _, c := range s.cards {
		supported, ret := c.handle.GetSupportedEventTypes()
		wanted := uint64(lib.EventTypeXidCriticalError | lib.EventTypeDoubleBitEccError)
		if ret == lib.SUCCESS {
			wanted &= supported
		}
		if wanted == 0 {
			continue
		}
		if ret := c.handle.RegisterEvents(wanted, set); ret != lib.SUCCESS {
			s.note(fmt.Sprintf("GPU %d: its error events cannot be watched: %s", c.index, message(ret)))
		}
	}
}

// mostEvents is the largest number of events handled at a time.
const mostEvents = 256

// hear handles the pending events, without waiting for more.
func (s *Source) hear() {
	for range mostEvents {
		if s.events == nil {
			return
		}
		ev, ret := s.events.Wait(0)
		if ret != lib.SUCCESS {
			return // ERROR_TIMEOUT: there are no more
		}
		xid := ev.EventData
		switch {
		case ev.EventType&lib.EventTypeXidCriticalError != 0:
		case ev.EventType&lib.EventTypeDoubleBitEccError != 0:
			xid = 48
		default:
			continue
		}
		for _, c := range s.cards {
			if ev.Device == nil || s.same(c, ev.Device) {
				s.heard(c, xid)
			}
		}
	}
}

// same reports whether an event's device is a card, or an instance of it.
func (s *Source) same(c *card, d lib.Device) bool {
	if d == c.handle || slices.ContainsFunc(c.units, func(u *unit) bool { return u.handle == d }) {
		return true
	}
	uuid, ret := d.GetUUID()
	return ret == lib.SUCCESS && uuid == c.uuid
}

func (s *Source) heard(c *card, xid uint64) {
	severity, text := classify(xid, c.index)
	log := s.opt.Log.Debug()
	switch severity {
	case fatal:
		log = s.opt.Log.Error()
		if !slices.Contains(c.xids, xid) {
			c.xids = append(c.xids, xid)
		}
	case suspicious:
		log = s.opt.Log.Warn()
		if !slices.Contains(c.warnings, text) {
			c.warnings = append(c.warnings, text)
		}
	}
	log.Int("gpu", c.index).Uint64("xid", xid).Str("reason", text).Msg("the driver reports an error")
}

// healthEvery is the time between two readings of slowly changing values.
const healthEvery = 10 * time.Second

// examine reads a card's memory errors, and the reasons for lower clocks.
func (s *Source) examine(c *card) {
	c.weak, c.broken = nil, ""
	s.askRecovery(c)
	if n, ret := c.handle.GetTotalEccErrors(lib.MEMORY_ERROR_TYPE_UNCORRECTED, lib.VOLATILE_ECC); ret == lib.SUCCESS && n != unknown {
		if c.ecc = n; n > 0 {
			c.weak = append(c.weak, fmt.Sprintf("%d uncorrectable memory errors since the driver was loaded", n))
		}
	}
	if s.has("nvmlDeviceGetRemappedRows") {
		_, _, pending, failed, ret := c.handle.GetRemappedRows()
		if ret == lib.SUCCESS && failed {
			c.broken = "failing memory could not be replaced by spare rows; the card is to be replaced"
		}
		if ret == lib.SUCCESS && pending {
			c.weak = append(c.weak, "memory rows wait to be replaced; reset the GPU when convenient")
		}
	}
	if pending, ret := c.handle.GetRetiredPagesPendingStatus(); ret == lib.SUCCESS && pending == lib.FEATURE_ENABLED {
		c.weak = append(c.weak, "memory pages wait to be retired; reset the GPU when convenient")
	}
	if s.has("nvmlDeviceGetCurrentClocksEventReasons") {
		reasons, ret := c.handle.GetCurrentClocksEventReasons()
		if ret == lib.SUCCESS {
			c.weak = append(c.weak, slowedBy(reasons)...)
		}
	}
}

// Reasons for lower clocks that go-nvml names only in their older form: hardware
// thermal slowdown and power brake (nvml.h, nvmlClocksThrottleReasonHw...).
const (
	hardwareThermal = 0x40
	powerBrake      = 0x80
)

// slowedBy returns the reasons for lower clocks that need attention. A power cap is
// common, and left out.
func slowedBy(reasons uint64) []string {
	if reasons == unknown {
		return nil
	}
	var out []string
	if reasons&(hardwareThermal|lib.ClocksEventReasonSwThermalSlowdown) != 0 {
		out = append(out, "slowed down because it is too hot")
	}
	if reasons&powerBrake != 0 {
		out = append(out, "slowed down by the power supply")
	}
	return out
}

// fault describes a card's fault by its own reports, or returns "" if there is none.
func (c *card) fault() string {
	if len(c.xids) > 0 {
		_, text := classify(c.xids[0], c.index)
		return text
	}
	return cmp.Or(c.kept, c.wants, c.broken)
}
