//go:build e2e

package test

import (
	"testing"

	"carma/internal/units"
	"carma/runner/api"
)

// TestLeavesByItself: a task on two GPUs, which the driver cannot suspend, offers to
// vacate them. On request it keeps only its context there, other tasks run on its GPUs,
// and it returns to both. The daemon is killed while the task vacates its GPUs and while
// it is suspended. Its output equals an undisturbed task's.
func TestLeavesByItself(t *testing.T) {
	t.Parallel()
	needRoot(t)
	s := newServer(t, "--warm-up", "0s")
	s.start()
	leaves := []string{"--gpus", "2", "--env", "CARMA_LEAVE=/run/carma-leave"}
	want := s.undisturbed("20G", leaves...)
	s.speed(60) // 10 s
	silent := s.steps("silent", "100h", "10G", "--gpus", "2")
	s.running(silent)
	if r := s.carma("suspend", silent); r.code == 0 {
		t.Errorf("a task on two GPUs that offers nothing is suspended: %s", r.out)
	}
	s.ok("stop", silent)
	s.finished(silent)

	ref := s.steps("leaves", "10m", "20G", leaves...)
	s.lineOf(ref, 4)
	s.until(ref, "it offers to leave", func(t *api.Task) bool { return t.Attempts[0].Leaves })
	s.ok("suspend", "--no-wait", ref)
	s.kill()
	s.start()
	s.is(ref, "suspended")
	eventually(t, "the contexts alone are there", func() bool { return s.used() > 0 && s.used() < 2*units.GiB })
	others := []string{s.steps("other", "20m", "35G"), s.steps("another", "20m", "35G"), s.steps("third", "20m", "35G"), s.steps("fourth", "20m", "35G")}
	for _, other := range others {
		s.holds(other, 35*units.GiB)
	}
	s.kill()
	s.start()
	s.ok("resume", ref)
	if task := s.inspect(ref); task.Phase != "suspended" || len(task.Attempts) != 1 {
		t.Errorf("without room it is %s in %d attempts", task.Phase, len(task.Attempts))
	}
	for _, other := range others {
		s.ok("stop", other)
	}
	s.is(ref, "running")
	s.holds(ref, 20*units.GiB)
	s.unharmed(ref, want)
	for _, other := range others {
		s.finished(other)
	}
	s.verified()
	for attempt, n := range engine.starts(s.instance()) {
		if n != 1 {
			t.Errorf("the container of %s was started %d times", attempt, n)
		}
	}
}
