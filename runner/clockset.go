package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"carma/mapper/units"

	"carma/runner/api"
	"carma/runner/journal"

	"golang.org/x/sys/unix"
)

// uptime is what the system counts evenly, also while it sleeps, since a boot.
type uptime struct {
	Boot  string        `json:"boot"` // which one; empty: not known
	Since time.Duration `json:"since"`
}

// upFor asks the kernel.
func upFor() uptime {
	var ts unix.Timespec
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return uptime{}
	}
	return uptime{strings.TrimSpace(string(id)), time.Duration(ts.Nano())}
}

// bootKey is the key in meta of the last start: the daemon's time, and for how
// long the machine had been up.
const bootKey = "boot"

type lastStart struct {
	uptime
	At units.Instant `json:"at"`
}

// clockSlack is a difference that is no correction of the clock: it drifts.
const clockSlack = time.Minute

// goOnInTime lets time go on from where the journal ends. A wall clock that was
// set back does not hold it up. One that was set forward ends no task before
// its time: while the machine is up, the kernel tells how much has passed. After
// a boot the wall clock is all there is; the containers have ended then.
func (r *Runner) goOnInTime(up uptime) error {
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

// placed reports whether any task holds GPUs.
func (r *Runner) placed() bool {
	for _, t := range r.state.Tasks() {
		if t.Phase.Placed() {
			return true
		}
	}
	return false
}

// checkClock warns when the daemon's time is not the wall clock's.
func (r *Runner) checkClock() api.Check {
	c := api.Check{Name: "clock", Status: "ok", Detail: "the daemon's time is the wall clock's"}
	switch ahead := r.Clock.Ahead().Round(time.Second); {
	case ahead > clockSlack:
		c.Status, c.Detail = "warning", fmt.Sprintf("the daemon's time is %s ahead of the wall clock, which was set back", ahead)
	case ahead < -clockSlack:
		c.Status, c.Detail = "warning", fmt.Sprintf("the daemon's time is %s behind the wall clock, which was set forward", -ahead)
	}
	if c.Status != "ok" {
		c.Mend = "set the clock right; time limits and delays are counted by what really passes"
	}
	return c
}
