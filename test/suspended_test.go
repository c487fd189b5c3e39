//go:build e2e

package test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"carma/internal/units"
	"carma/runner/api"
)

// trained returns the output of a task that is trained to its end, without the line about
// its GPU. It is the same for each run, see simtask --print steps.
func (s *server) trained(ref string) []string {
	s.t.Helper()
	out, errs := s.lines(ref)
	if len(errs) > 0 {
		s.t.Errorf("task %s: %q", ref, errs)
	}
	return slices.DeleteFunc(out, func(l string) bool { return strings.HasPrefix(l, "cuda:") })
}

// steps submits a task that takes so long alone, in simulated time.
func (s *server) steps(name, time, peak string, flags ...string) string {
	s.t.Helper()
	args := append([]string{"--name", name, "--mem", peak}, flags...)
	return s.submit(append(args, image, "resnet18_cifar100_20e_1", "--peak", peak, "--time", time, "--print", "steps")...)
}

// undisturbed returns the output of such a task without a suspension.
func (s *server) undisturbed(peak string, flags ...string) []string {
	s.t.Helper()
	s.speed(6000)
	ref := s.steps("undisturbed", "10m", peak, flags...)
	s.succeeded(ref)
	out := s.trained(ref)
	if len(out) != 53 || out[len(out)-1] != "trained 20 epochs" { // 1 of the header, 51, 1
		s.t.Fatalf("an undisturbed task prints %d lines: %q", len(out), out)
	}
	return out
}

// is waits until a task is in a phase.
func (s *server) is(ref, phase string) api.Task {
	s.t.Helper()
	return s.until(ref, "it is "+phase, func(t *api.Task) bool { return t.Phase == phase })
}

// used returns the memory that the simulated GPUs show as used.
func (s *server) used() (all units.Bytes) {
	s.t.Helper()
	gpus, err := s.api.GPUs(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, g := range gpus {
		all += units.Bytes(g.Used)
	}
	return all
}

// lineOf waits until a task has printed n lines.
func (s *server) lineOf(ref string, n int) {
	s.t.Helper()
	eventually(s.t, fmt.Sprintf("task %s prints %d lines", ref, n), func() bool { out, _ := s.lines(ref); return len(out) >= n })
}

// unharmed checks that a task ends as one that was never suspended.
func (s *server) unharmed(ref string, want []string) {
	s.t.Helper()
	s.speed(6000)
	task := s.succeeded(ref)[0]
	if len(task.Attempts) != 1 {
		s.t.Errorf("task %s had %d attempts", ref, len(task.Attempts))
	}
	if got := s.trained(ref); !slices.Equal(got, want) {
		s.t.Errorf("task %s printed\n%s\nwithout a suspend\n%s", ref, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestSuspend: a task is suspended, resumes, is suspended, and resumes on another GPU. It
// trains nothing meanwhile; its output equals an undisturbed task's.
func TestSuspend(t *testing.T) {
	t.Parallel()
	needRoot(t)
	s := newServer(t, "--warm-up", "0s")
	s.start()
	want := s.undisturbed("20G")
	s.speed(60) // 10 s
	ref := s.steps("moved", "10m", "20G")
	s.lineOf(ref, 5)
	first := s.running(ref).Attempts[0].GPUs[0].Index
	s.ok("suspend", ref)
	s.is(ref, "suspended")
	eventually(t, "nothing is used", func() bool { return s.used() == 0 })
	before := s.trained(ref)
	// All GPUs are full; one that it has not had becomes free.
	var crowd []string
	for range 4 {
		crowd = append(crowd, s.submit("--mem", "38G", image, "resnet18_cifar100_20e_1", "--peak", "38G", "--time", "100h"))
	}
	for _, big := range crowd {
		s.holds(big, 38*units.GiB)
	}
	if after := s.trained(ref); len(after) > len(before)+1 { // a line may have been on its way
		t.Errorf("it goes on while it is suspended: %q", after[len(before):])
	}
	s.ok("resume", ref)
	if task := s.inspect(ref); task.Phase != "suspended" {
		t.Errorf("without room it is %s", task.Phase)
	}
	crowd = slices.DeleteFunc(crowd, func(big string) bool {
		goes := s.running(big).Attempts[0].GPUs[0].Index == (first+1)%4
		if goes {
			s.ok("stop", big)
		}
		return goes
	})
	task := s.running(ref)
	if g := task.Attempts[0].GPUs[0].Index; g == first {
		t.Errorf("it is back on GPU %d, which is full", g)
	}
	s.holds(ref, 20*units.GiB)
	s.lineOf(ref, len(before)+5)
	s.ok("suspend", ref)
	s.is(ref, "suspended")
	s.ok("resume", ref)
	s.unharmed(ref, want)
	for _, big := range crowd {
		s.ok("stop", big)
		s.finished(big)
	}
	s.verified()
	for attempt, n := range engine.starts(s.instance()) { // what the GPUs had is in verified
		if n != 1 {
			t.Errorf("the container of %s was started %d times", attempt, n)
		}
	}
}

// TestSuspendedDaemonKilled: kill -9 while a task is suspended, while it is copied, and
// while it resumes. The next daemon finishes the step.
func TestSuspendedDaemonKilled(t *testing.T) {
	t.Parallel()
	needRoot(t)
	s := newServer(t, "--warm-up", "0s", "--speed", "6")
	s.start()
	want := s.undisturbed("20G")
	s.speed(6) // it is copied for 0.7 s
	ref := s.steps("survivor", "10m", "20G")
	s.lineOf(ref, 3)
	again := func(what string) {
		t.Helper()
		s.kill()
		s.start()
		if n := len(s.inspect(ref).Attempts); n != 1 {
			t.Fatalf("%s: %d attempts", what, n)
		}
	}
	s.ok("suspend", "--no-wait", ref)
	s.is(ref, "suspending")
	time.Sleep(200 * time.Millisecond)
	again("while it is copied to host memory")
	s.is(ref, "suspended")
	eventually(t, "nothing is used", func() bool { return s.used() == 0 })
	again("while it is suspended")
	s.is(ref, "suspended")
	s.ok("resume", ref)
	time.Sleep(200 * time.Millisecond)
	again("while it is copied back")
	s.is(ref, "running")
	s.holds(ref, 20*units.GiB)
	again("while it runs")
	s.unharmed(ref, want)
	s.verified()
	s.checkContainers()
}

// TestSuspendedStopped: a suspended task that is stopped is cancelled; one whose
// container is killed ends. Nothing of them is left.
func TestSuspendedStopped(t *testing.T) {
	t.Parallel()
	needRoot(t)
	s := newServer(t, "--warm-up", "0s")
	s.start()
	var refs []string
	for _, name := range []string{"stopped", "killed", "stopped-later"} {
		ref := s.steps(name, "900h", "5G")
		s.lineOf(ref, 2)
		refs = append(refs, ref)
	}
	s.ok(append([]string{"suspend"}, refs...)...)
	for _, ref := range refs {
		s.is(ref, "suspended")
	}
	s.ok("stop", refs[0])
	if task := s.finished(refs[0]); task.Phase != "cancelled" {
		t.Errorf("stopped, it is %s (%s)", task.Phase, task.Reason)
	}
	out, _ := s.lines(refs[0])
	if last := out[len(out)-1]; !strings.HasPrefix(last, "SIGTERM in epoch ") {
		t.Errorf("its last words are %q", last)
	}
	i := slices.IndexFunc(s.containers(), func(l life) bool { return fmt.Sprint(l.task) == refs[1] })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go engine.cli.ContainerKill(ctx, s.containers()[i].id, client.ContainerKillOptions{Signal: "KILL"}) // waits for a frozen one
	time.Sleep(time.Second)
	_ = s.carma("resume", refs[1]) // with control groups of version 1 a frozen process dies when it is thawed
	if task := s.finished(refs[1]); task.Phase == "succeeded" || len(task.Attempts) != 1 {
		t.Errorf("killed, it is %s (%s): %+v", task.Phase, task.Reason, task.Attempts)
	}
	s.kill()
	s.start()
	s.is(refs[2], "suspended")
	s.ok("stop", refs[2])
	if task := s.finished(refs[2]); task.Phase != "cancelled" {
		t.Errorf("stopped after a restart, it is %s (%s)", task.Phase, task.Reason)
	}
	eventually(t, "nothing is used", func() bool { return s.used() == 0 })
	s.verified()
}
