//go:build e2e

package test

import (
	"testing"
	"time"

	"carma/runner/api"

	"golang.org/x/sys/unix"
)

// TestEngineRestarted ends an engine as `systemctl restart docker` does: it ends its
// containers with SIGTERM, reports their ends, and stops. The tasks are not at fault.
func TestEngineRestarted(t *testing.T) {
	t.Parallel()
	needRoot(t)
	s, e := onOwnEngine(t)
	refs := []string{s.long("a"), s.long("b")}
	for _, ref := range refs {
		s.holds(ref, peak)
	}
	e.end()
	e.start()
	for _, ref := range refs {
		// Attempts during the engine's shutdown count as failed starts.
		task := s.until(ref, "another attempt", func(t *api.Task) bool { return t.Finished() || t.Phase == "running" && len(t.Attempts) > 1 })
		if first := task.Attempts[0]; task.Finished() || first.Outcome != "infrastructure" || !first.Blameless {
			t.Fatalf("task %s is %s (%s), its first attempt ended as %+v", ref, task.Phase, task.Reason, first)
		}
	}
	s.speed(30000)
	s.succeeded(refs...)
	if v := s.verified(); v.Succeeded != 2 || v.Launches < 4 {
		t.Errorf("the journal has %+v, want 2 tasks in at least 4 launches", v)
	}
}

// end sends SIGTERM: it ends its containers and itself.
func (e *dockerd) end() {
	e.t.Helper()
	if err := e.cmd.Process.Signal(unix.SIGTERM); err != nil {
		e.t.Fatal(err)
	}
	select {
	case <-e.exited:
	case <-time.After(time.Minute):
		e.t.Fatalf("dockerd does not end: %s", e.log())
	}
}
