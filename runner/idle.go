package runner

import (
	"fmt"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/record"

	"github.com/rs/zerolog"
)

// viewIdle returns the API form of a task's idleness, or nil if the task is active or has
// not been idle for long enough to report.
func (r *Runner) viewIdle(t *model.Task) *api.Idle {
	if t.Phase != model.Running || t.Idle.Since == 0 || !t.Idle.Told && t.Idle.Ends == 0 {
		return nil
	}
	return &api.Idle{Since: t.Idle.Since.Time(), Ends: instant(t.Idle.Ends), Unused: t.Idle.Unused}
}

// reportIdle reports an idle task to its owner in its terminal, and to the administrator in
// the log. ps, why and the status line of an attached run show it from the record.
func (r *Runner) reportIdle(d model.Idle) {
	rec, _ := r.records.Get(d.Task)
	if rec == nil || d.Since == 0 {
		return
	}
	idle := r.Clock.Now().Sub(d.Since).Round(time.Second)
	logIdle(r.Log, d, rec.User, idle)
	text := idleText(rec, d, r.Clock.Now())
	r.consoles.Say(d.Task, text)
}

// logIdle writes the administrator's line. The line has no stop_at until a stop is
// planned.
func logIdle(log zerolog.Logger, d model.Idle, user string, idle time.Duration) {
	line := log.Info().Int64("task", int64(d.Task)).Str("user", user).Stringer("idle", idle)
	if d.Ends != 0 {
		line = line.Time("stop_at", instant(d.Ends))
	}
	line.Msg("it does nothing")
}

// idleText describes a task's idleness and its consequence.
func idleText(rec *record.Record, d model.Idle, now units.Instant) string {
	idle, left, ends := now.Sub(d.Since).Round(time.Second), d.Ends.Sub(now).Round(time.Second), d.Ends != 0
	text := fmt.Sprintf("it has done nothing for %s and holds GPU memory that others could use", idle)
	switch {
	case rec.Submit.TTY:
		text = fmt.Sprintf("nothing was typed and its GPUs have done nothing for %s", idle)
	case d.Unused:
		text = fmt.Sprintf("it has not used its GPUs for %s, since it started, and others cannot have them", idle)
	}
	switch {
	case ends && rec.Submit.TTY:
		return fmt.Sprintf("%s; it is stopped in %s, unless something is typed (--idle-stop 0: never)", text, left)
	case ends:
		return fmt.Sprintf("%s; it is stopped in %s, unless it works", text, left)
	}
	return fmt.Sprintf("%s; carma stop %d ends it", text, rec.ID())
}
