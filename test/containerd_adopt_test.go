//go:build e2e && containerd

package test

import (
	"fmt"
	"syscall"
	"testing"

	"carma/internal/units"

	"carma/runner/api"
)

// onContainerdWith starts a daemon on containerd, with images. clean checks that
// nothing is left there.
func onContainerdWith(t *testing.T, flags ...string) (s *server, seen *containerdWatcher, clean func()) {
	t.Helper()
	c := newContainerd(t)
	on := []string{"--driver", "containerd", "--containerd-address", c.Address()}
	s = newServer(t, append(on, flags...)...)
	for _, archive := range []string{simtaskArchive(t), toolArchive(t)} {
		s.ok(append([]string{"image", "import", archive}, on...)...)
	}
	return s, watchContainerd(t, c), func() { t.Helper(); leftNothing(t, s, c) }
}

// TestContainerdAdopted (finding R1, on containerd): the daemon ends, by several
// signals, while tasks run whose grants have shrunk and grown. The next daemon
// adopts the same containers. Each is started once, as containerd's own events
// show, and a follower misses no output.
func TestContainerdAdopted(t *testing.T) {
	for name, signal := range map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "KILL": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, seen, clean := onContainerdWith(t, "--speed", "60", "--shrink", "20s", "--watchdog", "warn")
			s.start()
			shrinks := s.submit("--name", "shrinks", "--mem", "24G", image, "resnet50-imagenet-bs64", "--peak", "8G", "--time", "9h")
			grows := s.submit("--name", "grows", "--mem", "4G", image, "resnet50-imagenet-bs64", "--peak", "12G", "--time", "9h")
			waiting := s.begin(nil, "wait", shrinks)
			following := s.begin(nil, "logs", "-f", grows)
			following.await(&following.out, "resnet50 on imagenet")
			eventually(t, "one grant shrinks and one grows", func() bool {
				return s.granted("shrinks") < int64(24*units.GiB) && s.granted("grows") > int64(11*units.GiB)
			})
			before := map[string]string{}
			for _, ref := range []string{shrinks, grows} {
				before[ref] = s.inspect(ref).Attempts[0].Container
			}
			s.end(signal)
			s.start()
			for ref, container := range before {
				if task := s.running(ref); len(task.Attempts) != 1 || task.Attempts[0].Container != container {
					t.Errorf("task %s ran in %s: %+v", ref, container, task.Attempts)
				}
			}
			s.speed(60000)
			s.succeeded(shrinks, grows)
			for what, r := range map[string]result{"wait": waiting.wait(), "logs -f": following.wait()} {
				if r.code != 0 {
					t.Errorf("carma %s: %v", what, r)
				}
				if what == "logs -f" {
					s.complete(what, grows, r.out)
				}
			}
			starts := seen.starts(s.instance())
			if len(starts) != 2 || starts["1.1"] != 1 || starts["2.1"] != 1 {
				t.Errorf("containerd saw the starts %v, want one of each task", starts)
			}
			if v := s.verified(); v.Launches != 2 || v.Succeeded != 2 {
				t.Errorf("the journal has %+v, want 2 launches and successes", v)
			}
			clean()
		})
	}
}

// TestContainerdStopStubborn (finding F1): twelve tasks that ignore their stop
// signal end after their grace, even if the daemon dies meanwhile. A second stop
// shortens a long grace.
func TestContainerdStopStubborn(t *testing.T) {
	t.Parallel()
	s, seen, clean := onContainerdWith(t)
	s.start()
	var refs []string
	for i := range 12 {
		refs = append(refs, s.submit("--mem", "1G", "--name", fmt.Sprintf("stubborn-%d", i), tool, "out:ready", "stubborn"))
	}
	for _, ref := range refs {
		s.running(ref)
	}
	s.ok(append([]string{"stop", "-t", "1"}, refs[:6]...)...)
	s.ok(append([]string{"stop", "--no-wait", "--grace", "1h"}, refs[6:]...)...)
	for _, ref := range refs[6:] {
		s.until(ref, "its stop", func(t *api.Task) bool { return t.Phase == "stopping" })
	}
	s.kill()
	s.start()
	s.ok(append([]string{"stop", "-t", "1"}, refs[6:9]...)...)
	s.ok(append([]string{"stop", "--now"}, refs[9:11]...)...)
	s.ok("rm", "-f", "--now", refs[11])
	for _, ref := range refs[:11] {
		if task := s.finished(ref); task.Phase != "cancelled" {
			t.Errorf("task %s is %s: %s", ref, task.Phase, task.Reason)
		}
	}
	for attempt, n := range seen.starts(s.instance()) {
		if n != 1 {
			t.Errorf("attempt %s was started %d times", attempt, n)
		}
	}
	var gpus []api.GPU
	s.decode(&gpus, "gpus", "--json")
	for _, g := range gpus {
		if g.Reserved != 0 {
			t.Errorf("GPU %d still has %d bytes booked", g.Index, g.Reserved)
		}
	}
	clean()
}
