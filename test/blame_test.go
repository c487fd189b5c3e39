//go:build e2e

package test

import (
	"strings"
	"syscall"
	"testing"
)

// TestBlameByEvidence: an ordinary user's tasks cannot start on a real engine, for a
// reason that the engine's message lacks: it says that there are too many open files, and
// does not say that only the task's own limit is low. The engine is not at fault, /readyz
// stays ok, and tasks of others run. Then the user's tasks fail with the engine's
// message. The canary is no task, and none is left after kill -9.
func TestBlameByEvidence(t *testing.T) {
	t.Parallel()
	needRoot(t)
	s := newServer(t, "--backoff", "1s", "--blameless-retries", "3")
	s.borrowCommand()
	s.start()
	s.blameByEvidence()
	s.engine.gone(t, s.instance())
}

// blameByEvidence is the test, on a daemon that runs.
func (s *server) blameByEvidence() {
	t := s.t
	t.Helper()
	const bob, alice = 65534, 12345
	submit := func(id uint32, args ...string) string {
		t.Helper()
		r := s.begin(&syscall.Credential{Uid: id, Gid: id}, append([]string{"run", "-d", "--mem", "1G"}, args...)...).wait()
		if r.code != 0 {
			t.Fatal(r)
		}
		return strings.TrimSpace(r.out)
	}
	says := map[string]string{}
	for range 8 {
		says[submit(bob, "--ulimit", "nofile=5", tool, "out:x")] = "too many open files"
	}
	quiet := func() {
		t.Helper()
		if said := s.readyz(); said != "ok" {
			t.Errorf("readyz: %s", said)
		}
		for _, said := range []string{s.carma("ps").err, s.carma("info").out, s.carma("doctor").out} {
			if strings.Contains(said, "starts nothing") {
				t.Errorf("the engine is blamed: %s", said)
			}
		}
	}
	for range 3 {
		s.succeeded(submit(alice, tool, "out:y"))
		quiet()
	}
	s.kill()
	s.start()
	for ref, text := range says {
		task := s.finished(ref)
		last := task.Attempts[len(task.Attempts)-1]
		if task.Phase != "failed" || last.Outcome != "cannot-start" || !strings.Contains(task.Reason, text) || !strings.Contains(task.Reason, "the engine is not at fault") {
			t.Errorf("task %s: %s (%s), %s", ref, task.Phase, task.Reason, last.Outcome)
		}
	}
	quiet()
	if n := strings.Count(s.ok("ps", "-a", "-q"), "\n"); n != len(says)+3 {
		t.Errorf("%d tasks are listed", n)
	}
}
