//go:build e2e

package test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carma/internal/units"

	"carma/runner/api"
)

// peak is the memory of the simulated resnet50-imagenet-bs64.
const peak = 7106 * units.MiB

// TestEngineDown cuts the daemon off from the engine. Running tasks continue, submissions
// wait, and all of them finish when the engine is back.
func TestEngineDown(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--speed", "60", "--backoff", "1s")
	p := newProxy(t, s.root)
	s.host = p.host()
	s.start()
	trains := s.submit("--name", "trains", "--mem", "8G", image, "resnet50-imagenet-bs64", "--time", "1h")
	stays := s.submit("--name", "stays", "--mem", "8G", image, "resnet50-imagenet-bs64", "--time", "5h")
	s.holds(trains, peak)
	s.holds(stays, peak)

	p.cut()
	r := s.carma("doctor")
	if r.code != 1 || !strings.Contains(r.out, "failure  container engine") {
		t.Errorf("without an engine: %v", r)
	}
	r = s.carma("run", "-d", "--name", "later", "--mem", "1G", tool, "out:here I am")
	if r.code != 0 || strings.Count(r.err, "\n") != 1 || !strings.Contains(r.err, "container engine does not answer") {
		t.Errorf("submitted without an engine: %v", r)
	}
	later := strings.TrimSpace(r.out)
	waits := func(ref string) {
		t.Helper()
		eventually(t, "carma why "+ref+" tells of the engine", func() bool {
			return strings.Contains(s.ok("why", ref), "engine")
		})
		s.until(ref, "the reason in carma ps", func(t *api.Task) bool {
			return t.Phase == "queued" && strings.Contains(t.Waits, "engine")
		})
	}
	waits(later)

	// A running task needs neither the engine nor the daemon.
	s.speed(6000)
	s.engine.until(t, s.instance(), "the end of task "+trains, func(list []life) bool {
		return slices.ContainsFunc(list, func(l life) bool { return l.task == 1 && !l.died.IsZero() && l.code == 0 })
	})
	s.kill()
	s.flags = append(s.flags, "--speed", "6000")
	s.start()
	waits(later)
	still := s.submit("--name", "still-later", "--mem", "1G", tool, "out:me too")
	if after := s.carma("doctor"); after.code != 1 {
		t.Errorf("still without an engine: %v", after)
	}

	p.join()
	s.succeeded(trains, stays, later, still)
	for ref, want := range map[string]string{later: "here I am", still: "me too"} {
		if out, _ := s.lines(ref); !slices.Equal(out, []string{want}) {
			t.Errorf("task %s printed %q, want %q", ref, out, want)
		}
	}
	if r := s.carma("doctor"); r.code != 0 {
		t.Errorf("with the engine again: %v", r)
	}
	if v := s.verified(); v.Succeeded != 4 || v.Launches != 4 {
		t.Errorf("the journal has %+v, want 4 tasks, launched once each", v)
	}
	s.checkContainers()
	s.checkOutput(4)
}

// TestEngineKilled kills an engine and starts it again. Without live-restore it ends the
// containers that it finds running. Their tasks are relaunched and are not at fault.
func TestEngineKilled(t *testing.T) {
	t.Parallel()
	needRoot(t)
	s, e := onOwnEngine(t)
	refs := []string{s.long("a"), s.long("b")}
	for _, ref := range refs {
		s.holds(ref, peak)
	}
	e.kill()
	refs = append(refs, s.long("c"))
	e.start()
	s.relaunched(refs[:2]...)
	s.running(refs[2])
	s.speed(30000)
	s.succeeded(refs...)
	if v := s.verified(); v.Succeeded != 3 || v.Launches != 5 || v.OOMs != 0 {
		t.Errorf("the journal has %+v, want 3 tasks in 5 launches", v)
	}
	// They are removed once their end is durable.
	eventually(t, "no container is left", func() bool {
		left, err := e.watch().list(t.Context(), s.instance())
		return err == nil && len(left) == 0
	})
}

// TestReboot kills the daemon and the engine, like a power cut.
func TestReboot(t *testing.T) {
	t.Parallel()
	needRoot(t)
	s, e := onOwnEngine(t)
	refs := []string{s.long("a"), s.long("b")}
	for _, ref := range refs {
		s.holds(ref, peak)
	}
	s.kill()
	e.kill()
	e.start()
	s.start()
	s.relaunched(refs...)
	s.speed(30000)
	s.succeeded(refs...)
	if v := s.verified(); v.Succeeded != 2 || v.Launches != 4 {
		t.Errorf("the journal has %+v, want 2 tasks in 4 launches", v)
	}
}

// useEngine makes the daemon use an engine of this test.
func (s *server) useEngine(e *dockerd) { s.host, s.engine = e.host(), e.watch() }

// long submits a task that trains for longer than any test.
func (s *server) long(name string) string {
	s.t.Helper()
	return s.submit("--name", name, "--mem", "8G", image, "resnet50-imagenet-bs64", "--time", "9h")
}

// relaunched waits for the second attempt of tasks whose first one ended with the
// engine.
func (s *server) relaunched(refs ...string) {
	s.t.Helper()
	for _, ref := range refs {
		task := s.until(ref, "its second attempt", func(t *api.Task) bool {
			return t.Finished() || t.Phase == "running" && len(t.Attempts) == 2
		})
		if first := task.Attempts[0]; task.Finished() || first.Outcome != "infrastructure" || !first.Blameless {
			s.t.Fatalf("task %s is %s (%s), its first attempt ended as %+v, want a blameless infrastructure failure", ref, task.Phase, task.Reason, first)
		}
		if a, b := task.Attempts[0].Grant, task.Attempts[1].Grant; a != b {
			s.t.Errorf("task %s: its grant was %d and is %d although it did not run out of memory", ref, a, b)
		}
	}
}

// TestLeavesNothing: a daemon that stops leaves its tasks running and no trace of
// itself. Tasks that end leave nothing on the engine.
func TestLeavesNothing(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start()
	gate := filepath.Join(s.root, "gate")
	if err := os.Mkdir(gate, 0o755); err != nil {
		t.Fatal(err)
	}
	refs := []string{
		s.submit("--mem", "1G", "-v", gate+":/gate", tool, "lines:3", "gate:/gate/open", "lines:3"),
		s.submit("--mem", "1G", "-v", gate+":/gate", tool, "gate:/gate/never"),
		s.submit("--mem", "8G", image, "resnet50-imagenet-bs64", "--time", "1h"),
	}
	s.running(refs[0])
	s.running(refs[1])
	s.holds(refs[2], peak)
	s.stop()
	if _, err := os.Stat(s.socket); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
	for _, l := range s.containers() {
		if res, err := s.engine.cli.ContainerInspect(t.Context(), l.id, inspectNothing); err != nil || !res.Container.State.Running {
			t.Errorf("the container of task %d does not run any more: %v", l.task, err)
		}
	}
	// They end while no daemon runs.
	if err := os.WriteFile(filepath.Join(gate, "open"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s.engine.until(t, s.instance(), "the end of two tasks", func(list []life) bool {
		ended := 0
		for _, l := range list {
			if !l.died.IsZero() && l.code == 0 {
				ended++
			}
		}
		return ended == 2
	})
	s.start()
	s.succeeded(refs[0], refs[2])
	if out, errs := s.lines(refs[0]); len(out) != 6 || len(errs) != 6 {
		t.Errorf("the output has %d and %d lines, want 6 each: %q %q", len(out), len(errs), out, errs)
	}
	s.ok("stop", "-t", "0", refs[1])
	if v := s.verified(); v.Launches != 3 || v.Succeeded != 2 || v.Cancelled != 1 {
		t.Errorf("the journal has %+v, want 3 launches, 2 successes, 1 cancelled", v)
	}
	s.engine.gone(t, s.instance())
	s.ok(append([]string{"rm"}, refs...)...)
	if out := s.ok("ps", "-a", "-q"); out != "" {
		t.Errorf("after carma rm there are tasks %q", out)
	}
	s.stop()
}
