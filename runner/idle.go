package runner

import (
	"time"

	"carma/mapper/model"

	"github.com/rs/zerolog"
)

// reportIdle reports an idle task to its owner in its terminal, and to the administrator in
// the log. ps, why and the status line of an attached run show it from the record.
func (h *hooks) reportIdle(d model.Idle) {
	rec, _ := h.records.Get(d.Task)
	if rec == nil || d.Since == 0 {
		return
	}
	idle := h.Clock.Now().Sub(d.Since).Round(time.Second)
	logIdle(h.Log, d, rec.User, idle)
	h.consoles.Say(d.Task, rec.IdleText(d, h.Clock.Now()))
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
