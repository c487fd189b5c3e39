//go:build cgo

package nvml

import "time"

// meter turns a card's energy counter, in millijoules since the driver was
// loaded, into joules since the source was opened. It never runs backwards.
type meter struct {
	joules float64
	last   uint64 // mJ, as last read
	valid  bool   // last can be continued from
	at     time.Time
}

const (
	// mostPower, in watts, is the highest plausible power: no card draws 10 kW.
	mostPower = 10_000.0
	// longestGap is the longest time over which power is integrated.
	longestGap = time.Minute
)

// read adds a reading and returns the joules. counted is set if the card has a counter
// that can be read now; millijoules is its value. Otherwise power, in watts, is
// integrated.
func (m *meter) read(now time.Time, millijoules uint64, counted bool, power float64) float64 {
	long := 0.0
	if !m.at.IsZero() {
		long = max(0, now.Sub(m.at).Seconds())
	}
	gap := min(long, longestGap.Seconds())
	m.at = now
	switch {
	case !counted:
		m.joules += power * gap
		m.valid = false
		return m.joules
	case !m.valid:
		m.joules += power * gap // since the last reading of the counter
		m.last, m.valid = millijoules, true
		return m.joules
	}
	grown := millijoules - m.last
	if millijoules < m.last {
		grown = millijoules // the counter was reset: the driver was reloaded, or the GPU reset
	}
	m.last = millijoules
	if j := float64(grown) / 1000; j <= mostPower*(long+1) {
		m.joules += j
	} else {
		m.joules += power * gap
	}
	return m.joules
}
