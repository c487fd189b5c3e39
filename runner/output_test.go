package runner

import (
	"errors"
	"strings"
	"testing"

	"carma/containers/containerstest"
	"carma/runner/api"
)

// TestLogsOfNoAttempt: output that will never be there is refused, not empty.
func TestLogsOfNoAttempt(t *testing.T) {
	g := newRig(t)
	g.engine.AddImage("one", containerstest.Image{Run: printing(0, "x")})
	ref := g.run(api.Submit{Image: "one"})
	g.finished(ref)
	for _, follow := range []bool{false, true} {
		_, err := g.api.Logs(g.ctx(), ref, api.LogOptions{Attempt: 3, Follow: follow}, func(api.LogLine) error { return nil })
		var status *api.StatusError
		if !errors.As(err, &status) || !status.Usage() || !strings.Contains(err.Error(), "task "+ref+" has no attempt 3: it has only attempt 1") {
			t.Errorf("follow %v: %v", follow, err)
		}
	}
	n := 0
	if _, err := g.api.Logs(g.ctx(), ref, api.LogOptions{Attempt: 1}, func(api.LogLine) error { n++; return nil }); err != nil || n != 1 {
		t.Errorf("attempt 1: %d lines, %v", n, err)
	}
}
