package runner

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"carma/mapper"
	"carma/mapper/units"
)

// TestIdleLog: the log's line about an idle task has the time of its stop, if there is
// one.
func TestIdleLog(t *testing.T) {
	stop := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for ends, want := range map[units.Instant]bool{0: false, units.Instant(stop.UnixNano()): true} {
		var out bytes.Buffer
		logIdle(zerolog.New(&out), mapper.Idle{Task: 17, Ends: ends}, "ann", time.Minute)
		if line := out.String(); strings.Contains(line, "stop_at") != want || !strings.Contains(line, `"task":17,"user":"ann","idle":"1m0s"`) {
			t.Errorf("ends %d: %s", ends, line)
		}
	}
}
