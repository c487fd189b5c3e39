package record

import (
	"fmt"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

// IdleText describes the task's idleness and its consequence.
func (r *Record) IdleText(d model.Idle, now units.Instant) string {
	idle, left, ends := now.Sub(d.Since).Round(time.Second), d.Ends.Sub(now).Round(time.Second), d.Ends != 0
	text := fmt.Sprintf("it has done nothing for %s and holds GPU memory that others could use", idle)
	switch {
	case r.Submit.TTY:
		text = fmt.Sprintf("nothing was typed and its GPUs have done nothing for %s", idle)
	case d.Unused:
		text = fmt.Sprintf("it has not used its GPUs for %s, since it started, and others cannot have them", idle)
	}
	switch {
	case ends && r.Submit.TTY:
		return fmt.Sprintf("%s; it is stopped in %s, unless something is typed (--idle-stop 0: never)", text, left)
	case ends:
		return fmt.Sprintf("%s; it is stopped in %s, unless it works", text, left)
	}
	return fmt.Sprintf("%s; carma stop %d ends it", text, r.ID())
}
