package runner

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"

	"github.com/rs/zerolog"
)

// TestIdleLog checks that the log line about an idle task contains the time of its stop, if one
// is planned.
func TestIdleLog(t *testing.T) {
	stop := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for ends, want := range map[units.Instant]bool{0: false, units.Instant(stop.UnixNano()): true} {
		var out bytes.Buffer
		logIdle(zerolog.New(&out), model.Idle{Task: 17, Ends: ends}, "ann", time.Minute)
		if line := out.String(); strings.Contains(line, "stop_at") != want || !strings.Contains(line, `"task":17,"user":"ann","idle":"1m0s"`) {
			t.Errorf("ends %d: %s", ends, line)
		}
	}
}

// TestSquatterTold checks that a task that holds two GPUs and never uses them is reported to
// its owner by message, in the answers about the task, and in the log.
func TestSquatterTold(t *testing.T) {
	box := newMailbox(t)
	g := newRig(t, posting(), func(g *rig) { g.opt.Mapper.IdleReport = 50 * time.Millisecond })
	g.channels(box.channel("mine", api.NotifyEvents...))
	long := g.gated("sleep")
	ref := g.run(api.Submit{Image: "sleep", Name: "sleep", GPUs: 2, Exclusive: true})
	task := g.until(ref, "idle", func(t api.Task) bool { return t.Idle != nil })
	if !task.Idle.Unused || task.Idle.Since.IsZero() || len(task.Attempts[0].GPUs) != 2 {
		t.Errorf("%+v", task.Idle)
	}
	g.eventually("the message", func() bool {
		m, n := box.of("sleep", api.NotifyIdle)
		return n == 1 && strings.Contains(m.Reason, "it has not used its GPUs for ") && strings.Contains(m.Reason, "others cannot have them")
	})
	close(long.gate)
	g.finished(ref)
}
