//go:build e2e

package test

import (
	"path/filepath"
	"testing"
)

// TestSuspendedSetBack: the journal is set back to a copy from before a task was
// suspended. The task resumes without a command, and its output equals an undisturbed
// task's.
func TestSuspendedSetBack(t *testing.T) {
	t.Parallel()
	needRoot(t)
	s := newServer(t, "--warm-up", "0s")
	s.start()
	want := s.undisturbed("20G")
	s.speed(60)
	ref := s.steps("set-back", "10m", "20G")
	s.lineOf(ref, 3)
	copied := filepath.Join(t.TempDir(), "copy.db")
	s.ok("journal", "backup", "--data-dir", s.dir, copied)
	s.ok("suspend", ref)
	s.is(ref, "suspended")
	s.kill()
	s.ok("journal", "restore", "--data-dir", s.dir, copied)
	s.start()
	s.unharmed(ref, want)
	s.checkContainers()
}
