package loop

import (
	"fmt"
	"time"
)

// stuckAfter is the duration of a loop round after which the loop counts as stuck.
const stuckAfter = 20 * time.Second

// Stuck returns a sentence if the loop has been at one round for too long, or "". It does not
// wait for the loop.
func (l *Loop) Stuck() string {
	since := l.busy.Load()
	if since == 0 {
		return ""
	}
	if d := time.Since(time.Unix(0, since)); d > stuckAfter {
		return fmt.Sprintf("the daemon's loop has been at one round for %s", d.Round(time.Second))
	}
	return ""
}

// Full returns a sentence if the journal cannot be written or lives on its spare room, or "".
// It does not wait for the loop.
func (l *Loop) Full() string {
	switch {
	case l.unwritable.Load():
		return "the journal cannot be written: its disk is full"
	case l.tight.Load():
		return "the journal's disk is full: submissions are refused until there is room"
	}
	return ""
}
