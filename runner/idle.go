package runner

import (
	"time"

	"carma/mapper/model"
	"carma/runner/api"

	"github.com/rs/zerolog"
)

// viewIdle returns the API form of a task's idleness, or nil if the task is active or has
// not been idle for long enough to report.
func viewIdle(t *model.Task) *api.Idle {
	if t.Phase != model.Running || t.Idle.Since == 0 || !t.Idle.Told && t.Idle.Ends == 0 {
		return nil
	}
	return &api.Idle{Since: t.Idle.Since.Time(), Ends: t.Idle.Ends.TimeOrZero(), Unused: t.Idle.Unused}
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
	r.consoles.Say(d.Task, rec.IdleText(d, r.Clock.Now()))
}

// logIdle writes the administrator's line. The line has no stop_at until a stop is
// planned.
func logIdle(log zerolog.Logger, d model.Idle, user string, idle time.Duration) {
	line := log.Info().Int64("task", int64(d.Task)).Str("user", user).Stringer("idle", idle)
	if d.Ends != 0 {
		line = line.Time("stop_at", d.Ends.TimeOrZero())
	}
	line.Msg("it does nothing")
}
