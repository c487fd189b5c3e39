package storedoutput

import (
	"time"

	"carma/containers"
	"carma/runner/tasklog"
)

// thrownAway is the reason in the note if the engine's own log had no room.
const thrownAway = "the container engine had thrown them away before they could be read"

// NoteMissing records output that the engine has dropped.
func NoteMissing(out *tasklog.Writer, at time.Time, text []byte) {
	m, ok := containers.ParseMissing(text)
	switch {
	case out == nil || !ok:
	case m.Before > 0:
		out.Before(at, m.Before, thrownAway)
	default:
		out.Gap(at, m.Lines, thrownAway)
	}
}
