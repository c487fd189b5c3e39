package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"carma/internal/units"

	"carma/runner/api"
	"carma/runner/journal"

	"golang.org/x/sys/unix"
)

// uptime is the time since a boot. The kernel counts it evenly, also while the machine
// sleeps.
type uptime struct {
	Boot  string        `json:"boot"` // the boot's ID, or "" if unknown
	Since time.Duration `json:"since"`
}

// upFor asks the kernel for the uptime, and returns zero if it is unknown.
func upFor() uptime {
	var ts unix.Timespec
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return uptime{}
	}
	return uptime{strings.TrimSpace(string(id)), time.Duration(ts.Nano())}
}

// bootKey is the key in the journal's meta under which a start stores the daemon's time
// and the machine's uptime.
const bootKey = "boot"

type lastStart struct {
	uptime
	At units.Instant `json:"at"`
}

// clockSlack is the largest difference of two clocks that drift explains. A larger
// difference means that a clock was set.
const clockSlack = time.Minute

// restoreClock sets the daemon's time at a start: it continues from the journal's end. If the
// wall clock was set back, time still moves forward. If it was set forward, no task ends
// early: while the machine is up, the kernel's uptime says how much time has passed. After
// a boot only the wall clock is left; the containers have ended then.
func (r *Runner) restoreClock(up uptime) error {
	now, why := r.Clock.Now(), ""
	then, known, err := r.lastStart()
	if err != nil {
		return err
	}
	at := now
	if known && up.Boot != "" && then.Boot == up.Boot && r.opt.SetSpeed == nil && r.placed() {
		if passed := then.At.Add(up.Since - then.Since); now.Sub(passed) > clockSlack {
			at, why = passed, "the wall clock was set forward while tasks ran; the daemon's time goes on by what has really passed, until the machine is booted"
		}
	}
	if last := r.state.Now(); at < last {
		at = last
		if at.Sub(now) > clockSlack {
			why = "the wall clock was set back; the daemon's time goes on from the journal's last instant"
		}
	}
	if at != now {
		r.Clock.SetTo(at)
	}
	if why != "" {
		r.Log.Warn().Stringer("by", now.Sub(at).Round(time.Second)).Msg(why)
	}
	b, err := json.Marshal(lastStart{up, at})
	if err != nil {
		return err
	}
	return r.note(bootKey, b)
}

func (r *Runner) lastStart() (then lastStart, known bool, err error) {
	b, err := r.Journal.Meta(bootKey)
	if errors.Is(err, journal.ErrNotFound) {
		return then, false, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &then)
	}
	return then, err == nil, err
}

// placed reports whether any task is placed.
func (r *Runner) placed() bool {
	for _, t := range r.state.Tasks() {
		if t.Alive() != nil {
			return true
		}
	}
	return false
}

// checkClock warns if the daemon's time differs from the wall clock's.
func (r *Runner) checkClock() api.Check {
	c := api.Check{Name: "clock", Status: "ok", Detail: "the daemon's time is the wall clock's"}
	switch ahead := r.Clock.Ahead().Round(time.Second); {
	case ahead > clockSlack:
		c.Status, c.Detail = "warning", fmt.Sprintf("the daemon's time is %s ahead of the wall clock, which was set back", ahead)
	case ahead < -clockSlack:
		c.Status, c.Detail = "warning", fmt.Sprintf("the daemon's time is %s behind the wall clock, which was set forward", -ahead)
	}
	if c.Status != "ok" {
		c.Mend = "set the wall clock right; time limits and delays count the time that really passes"
	}
	return c
}
