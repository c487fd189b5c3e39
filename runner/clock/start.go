package clock

import (
	"os"
	"strings"
	"time"

	"carma/internal/units"

	"golang.org/x/sys/unix"
)

// Uptime is the time since a boot. The kernel counts it evenly, also while the machine
// sleeps.
type Uptime struct {
	Boot  string        `json:"boot"` // the boot's ID, or "" if unknown
	Since time.Duration `json:"since"`
}

// ReadUptime asks the kernel for the uptime, and returns zero if it is unknown.
func ReadUptime() Uptime {
	var ts unix.Timespec
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return Uptime{}
	}
	return Uptime{strings.TrimSpace(string(id)), time.Duration(ts.Nano())}
}

// Start is the daemon's time and the machine's uptime at a start of the daemon.
type Start struct {
	Uptime
	At units.Instant `json:"at"`
}

// Slack is the largest difference of two clocks that drift explains. A larger difference
// means that a clock was set.
const Slack = time.Minute

// Restore sets the daemon's time at a start: it continues from last, the last instant in the
// journal. If the wall clock was set back, time still moves forward. If it was set forward, no
// task ends early: while the machine is up, the kernel's uptime says how much time has passed.
// After a boot only the wall clock is left; the containers have ended then.
//
// before is the last start, or nil if the uptime does not count: the last start is unknown, or
// no task could end early. The warning is empty unless a clock was set. lag is the time by
// which Restore has set the clock back. It is negative if Restore has set the clock forward.
func (c *Clock) Restore(before *Start, up Uptime, last units.Instant) (s Start, warning string, lag time.Duration) {
	now := c.Now()
	at := now
	if before != nil && up.Boot != "" && before.Boot == up.Boot {
		if passed := before.At.Add(up.Since - before.Since); now.Sub(passed) > Slack {
			at, warning = passed, "the wall clock was set forward while tasks ran; the daemon's time goes on by what has really passed, until the machine is booted"
		}
	}
	if at < last {
		at = last
		if at.Sub(now) > Slack {
			warning = "the wall clock was set back; the daemon's time goes on from the journal's last instant"
		}
	}
	if at != now {
		c.SetTo(at)
	}
	return Start{up, at}, warning, now.Sub(at)
}
