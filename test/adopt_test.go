//go:build e2e

package test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"carma/internal/units"

	"github.com/moby/moby/client"
	"golang.org/x/sys/unix"

	"carma/runner/api"
)

// TestAdopted (finding R1) ends the daemon, by several signals, while tasks run whose
// grants have shrunk and grown. It starts the daemon again, also with other settings. The
// containers must continue and be started only once, as the engine's own events show.
// Their output must be complete, and waiting commands must continue to wait.
func TestAdopted(t *testing.T) {
	for name, c := range map[string]struct {
		signal syscall.Signal
		flags  []string // of the second daemon
	}{
		"TERM":                     {syscall.SIGTERM, nil},
		"INT":                      {syscall.SIGINT, nil},
		"KILL":                     {syscall.SIGKILL, nil},
		"TERM, another policy":     {syscall.SIGTERM, []string{"--policy", "round-robin", "--speed", "90"}},
		"KILL, other limits":       {syscall.SIGKILL, []string{"--shrink", "0s", "--watchdog", "off", "--memory-caps", "off"}},
		"KILL, other estimates":    {syscall.SIGKILL, []string{"--environment", "h100-2026-11", "--policy", "carma"}},
		"INT, other mounts, grace": {syscall.SIGINT, []string{"--allowed-mounts", "/nowhere", "--stop-grace", "3s"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, "--speed", "60", "--shrink", "20s", "--watchdog", "warn")
			s.start()
			shrinks := s.submit("--name", "shrinks", "--mem", "24G", image, "resnet50-imagenet-bs64", "--peak", "8G", "--time", "9h")
			grows := s.submit("--name", "grows", "--mem", "4G", image, "resnet50-imagenet-bs64", "--peak", "12G", "--time", "9h")
			attached := s.begin(nil, "run", "--name", "attached", "--mem", "4G", image, "resnet50-imagenet-bs64", "--peak", "2G", "--time", "9h")
			attached.await(&attached.out, "resnet50 on imagenet")
			waiting := s.begin(nil, "wait", shrinks)
			following := s.begin(nil, "logs", "-f", grows)
			following.await(&following.out, "resnet50 on imagenet")
			eventually(t, "one grant shrinks and one grows", func() bool {
				return s.granted("shrinks") < int64(24*units.GiB) && s.granted("grows") > int64(11*units.GiB)
			})
			before := map[string]int64{"shrinks": s.granted("shrinks"), "grows": s.granted("grows")}
			made := s.containers()

			s.end(c.signal)
			s.flags = append(s.flags, c.flags...)
			s.start()
			// One that has grown may be cut to its peak and a smaller margin.
			for name, grant := range before {
				if now := s.granted(name); name == "shrinks" && now > grant || name == "grows" && now < grant*9/10 {
					t.Errorf("the grant of %s was %d and is %d", name, grant, now)
				}
			}
			s.speed(60000)
			tasks := s.succeeded(shrinks, grows, "attached")
			for _, task := range tasks {
				if len(task.Attempts) != 1 {
					t.Errorf("%s ran %d times: %+v", task.Name, len(task.Attempts), task.Attempts)
				}
			}
			for what, r := range map[string]result{"wait": waiting.wait(), "logs -f": following.wait(), "run": attached.wait()} {
				if r.code != 0 {
					t.Errorf("carma %s: %v", what, r)
				}
				if what != "wait" {
					s.complete(what, map[string]string{"logs -f": grows, "run": "attached"}[what], r.out)
				}
			}
			s.engine.gone(t, s.instance())
			lives := s.containers()
			if len(lives) != len(made) {
				t.Errorf("%d containers were made, %d before the restart", len(lives), len(made))
			}
			for _, l := range lives {
				if len(l.starts) != 1 || l.attempt != 1 || len(l.signals) > 0 {
					t.Errorf("task %d: attempt %d, started %d times, signals %v", l.task, l.attempt, len(l.starts), l.signals)
				}
			}
			s.checkOutput(3)
			if v := s.verified(); v.Launches != 3 || v.Succeeded != 3 {
				t.Errorf("the journal has %+v, want 3 launches and successes", v)
			}
		})
	}
}

// end ends the daemon with a signal and waits for its end.
func (s *server) end(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
	<-s.exited
	s.cmd = nil
}

// granted returns the memory that is allocated to a task on its GPU now, in bytes, or 0
// if there is none.
func (s *server) granted(name string) int64 {
	gpus, err := s.api.GPUs(s.t.Context())
	if err != nil {
		return 0
	}
	for _, g := range gpus {
		for _, r := range g.Tasks {
			if r.Name == name {
				return r.Grant
			}
		}
	}
	return 0
}

// complete checks a task's output as one reader saw it over a restart: every
// line, in order, once.
func (s *server) complete(what, ref, saw string) {
	s.t.Helper()
	kept := s.carma("logs", ref)
	if got, want := split(saw), split(kept.out); !slices.Equal(got, want) {
		s.t.Errorf("carma %s of task %s printed %d lines, %d were kept; the last are %q and %q", what, ref, len(got), len(want), last(got), last(want))
	}
}

func last(lines []string) []string { return lines[max(0, len(lines)-3):] }

// TestHungEngine (finding F10) stops an engine's processes, so that it accepts requests
// and answers none. Nothing may wait for it, and afterwards everything continues.
func TestHungEngine(t *testing.T) {
	t.Parallel()
	needRoot(t)
	s, e := onOwnEngine(t)
	ref, stopped := s.long("a"), s.long("b")
	s.holds(ref, peak)
	s.holds(stopped, peak)
	if err := unix.Kill(e.cmd.Process.Pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	goOn := func() { _ = unix.Kill(e.cmd.Process.Pid, unix.SIGCONT) }
	defer goOn()
	r := s.carma("run", "-d", "--name", "later", "--mem", "1G", image, "resnet50-imagenet-bs64", "--time", "10m")
	if r.code != 0 { // with a warning, unless its image was looked up just before
		t.Errorf("submitted to an engine that hangs: %v", r)
	}
	for _, args := range [][]string{{"doctor"}, {"info"}, {"ps"}, {"why", "later"}} {
		if r := s.carma(args...); r.code != 0 && args[0] != "doctor" {
			t.Errorf("with an engine that hangs: %v", r)
		}
	}
	stop := s.begin(nil, "stop", "--now", stopped)
	stop.await(&stop.err, "waiting for the end of task")
	stop.await(&stop.err, "does not answer")
	goOn()
	if r := stop.wait(); r.code != 0 {
		t.Errorf("a stop that waited for an engine: %v", r)
	}
	if task := s.finished(stopped); task.Phase != "cancelled" {
		t.Errorf("the stopped task is %s: %s", task.Phase, task.Reason)
	}
	s.speed(60000)
	for _, task := range s.succeeded(ref, "later") {
		if len(task.Attempts) != 1 {
			t.Errorf("%s ran %d times", task.Name, len(task.Attempts))
		}
	}
	if v := s.verified(); v.Launches != 3 {
		t.Errorf("the journal has %+v, want 3 launches", v)
	}
}

// TestStopStubborn: tasks that ignore their stop signal end, and so does a paused
// one. A second stop shortens a long grace.
func TestStopStubborn(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start()
	var refs []string
	for i := range 6 {
		refs = append(refs, s.submit("--mem", "1G", "--name", fmt.Sprintf("stubborn-%d", i), tool, "out:ready", "stubborn"))
	}
	for _, ref := range refs {
		s.running(ref)
	}
	for _, l := range s.containers() {
		if strconv.Itoa(l.task) != refs[0] {
			continue
		}
		if _, err := s.engine.cli.ContainerPause(t.Context(), l.id, client.ContainerPauseOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	s.ok(append([]string{"stop", "--no-wait", "--grace", "1h"}, refs[3:]...)...)
	for _, ref := range refs[3:] {
		s.until(ref, "its stop", func(t *api.Task) bool { return t.Phase == "stopping" })
	}
	s.kill()
	s.start()
	s.ok(append([]string{"stop", "-t", "1"}, refs[:4]...)...)
	s.ok("stop", "--now", refs[4])
	s.ok("rm", "-f", "--now", refs[5])
	for _, ref := range refs[:5] {
		if task := s.finished(ref); task.Phase != "cancelled" {
			t.Errorf("task %s is %s: %s", ref, task.Phase, task.Reason)
		}
	}
	s.engine.gone(t, s.instance())
}

// TestStopOverOutage: an engine that fails during a stop and recovers does not keep a
// task from ending.
func TestStopOverOutage(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	p := newProxy(t, s.root)
	s.host = p.host()
	s.start()
	ref := s.submit("--mem", "1G", tool, "out:ready", "stubborn")
	s.running(ref)
	s.ok("stop", "--no-wait", "--grace", "300ms", ref)
	p.cut()
	s.until(ref, "its stop", func(t *api.Task) bool { return t.Phase == "stopping" })
	eventually(t, "the daemon has tried to kill it", func() bool { return strings.Contains(s.log.String(), "could not be stopped; it is tried again") })
	p.join()
	if task := s.finished(ref); task.Phase != "cancelled" {
		t.Errorf("the task is %s: %s", task.Phase, task.Reason)
	}
	s.engine.gone(t, s.instance())
}

// TestBegunInARestart checks that a command that begins to wait or to follow during a restart
// of the daemon prints a message and then works.
func TestBegunInARestart(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start()
	ref := s.submit("--mem", "1G", tool, "out:ready", "block:3")
	s.running(ref)
	s.stop()
	waiting, following := s.begin(nil, "wait", ref), s.begin(nil, "logs", "-f", ref)
	waiting.await(&waiting.err, "no daemon answers; trying again")
	following.await(&following.err, "no daemon answers; trying again")
	s.start()
	following.await(&following.out, "ready")
	s.ok("stop", ref)
	if r := waiting.wait(); r.code != 3 || r.out != "3\n" {
		t.Errorf("wait: %v", r)
	}
	if r := following.wait(); r.code != 0 || r.out != "ready\n" {
		t.Errorf("logs -f: %v", r)
	}
	s.stop()
	if r := s.carma("wait", ref); r.code != 2 || !strings.Contains(r.err, "no carma daemon") && !strings.Contains(r.err, "no daemon") {
		t.Errorf("wait without a daemon: %v", r)
	}
}
