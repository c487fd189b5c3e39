//go:build e2e

package test

import (
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"carma/runner/api"
)

// TestAttached: to the shell, carma run in the foreground behaves like the task
// itself.
func TestAttached(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start()
	r := s.carma("run", "--mem", "1G", tool, "lines:3", "raw:no newline", "exit:7")
	if r.code != 7 || r.out != "out 1\nout 2\nout 3\nno newline\n" || !strings.HasPrefix(r.err, "err 1\nerr 2\nerr 3\ncarma: task 1 failed") {
		t.Errorf("a task that exits with 7: %v", r)
	}
	r = s.carma("run", "--mem", "1G", "-e", "WHO=me", tool, "env:WHO", "env:CARMA_TASK")
	if r.code != 0 || r.out != "WHO=me\nCARMA_TASK=2\n" || r.err != "" {
		t.Errorf("piped, there is the task's output and nothing else: %v", r)
	}

	// The first Ctrl-C stops the task.
	run := s.begin(nil, "run", "--mem", "1G", tool, "out:ready", "block:42")
	run.await(&run.out, "ready\n")
	run.signal(syscall.SIGINT)
	r = run.wait()
	if r.code != 42 || !strings.HasPrefix(r.err, "carma: stopping task 3; Ctrl-C again returns at once, and does not call that off\n") {
		t.Errorf("after Ctrl-C: %v", r)
	}
	if task := s.inspect("3"); task.Phase != "cancelled" || !strings.Contains(task.Reason, "Ctrl-C") {
		t.Errorf("after Ctrl-C the task is %s: %s", task.Phase, task.Reason)
	}

	// The second Ctrl-C does not wait for its end.
	run = s.begin(nil, "run", "--mem", "1G", "--stop-grace", "10m", tool, "out:ready", "stubborn")
	run.await(&run.out, "ready\n")
	run.signal(syscall.SIGINT)
	run.await(&run.err, "Ctrl-C again")
	s.until("4", "the stop", func(t *api.Task) bool { return t.Phase == "stopping" })
	run.signal(syscall.SIGINT)
	r = run.wait()
	if r.code != 130 || !strings.Contains(r.err, "task 4 is being stopped") || strings.Count(r.err, "\n") != 2 {
		t.Errorf("after the second Ctrl-C: %v", r)
	}
	if task := s.inspect("4"); task.Phase != "stopping" {
		t.Errorf("after the second Ctrl-C the task is %s", task.Phase)
	}

	// Ctrl-\ detaches and leaves the task running.
	run = s.begin(nil, "run", "--mem", "1G", tool, "out:ready", "block:0")
	run.await(&run.out, "ready\n")
	run.signal(syscall.SIGQUIT)
	if r = run.wait(); r.code != 0 || !strings.Contains(r.err, "task 5 goes on without this terminal") {
		t.Errorf("after Ctrl-\\: %v", r)
	}
	if task := s.inspect("5"); task.Phase != "running" {
		t.Errorf("after Ctrl-\\ the task is %s", task.Phase)
	}
	s.ok("stop", "--now", "5")

	// A waiting task is stopped without ever having run.
	run = s.begin(nil, "run", "--mem", "1G", "--gpus", "4", "--exclusive", tool, "out:never")
	eventually(t, "the task is submitted", func() bool { _, err := s.api.Task(t.Context(), "6"); return err == nil })
	s.until("6", "its place in the queue", func(t *api.Task) bool { return t.Phase == "queued" })
	run.signal(syscall.SIGINT)
	if r = run.wait(); r.code != 1 || r.out != "" {
		t.Errorf("after Ctrl-C while it waited: %v", r)
	}
	if task := s.inspect("6"); task.Phase != "cancelled" || len(task.Attempts) != 0 {
		t.Errorf("after Ctrl-C while it waited the task is %+v", task)
	}
	if err := s.engine.remove(s.instance()); err != nil { // the stubborn task
		t.Fatal(err)
	}
	s.until("4", "its end", func(t *api.Task) bool { return t.Phase == "cancelled" })
}

// TestAttachedSurvivesKill: an attached run survives a restart of the daemon.
func TestAttachedSurvivesKill(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start()
	run := s.begin(nil, "run", "--mem", "1G", tool, "lines:100", "out:ready", "block:5")
	run.await(&run.out, "ready\n")
	s.kill()
	run.await(&run.err, "lost the daemon")
	s.start()
	run.await(&run.err, "the daemon is back")
	s.ok("stop", "1")
	r := run.wait()
	want := split(s.ok("logs", "1"))
	if r.code != 5 || !slices.Equal(split(r.out), want) || len(want) != 101 {
		t.Errorf("want the 101 lines of its output once: %v", r)
	}
}

// TestStop: carma stop gives a task exactly its grace period.
func TestStop(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start()
	polite := s.submit("--name", "polite", "--mem", "1G", tool, "out:ready", "block:3")
	stubborn := s.submit("--name", "stubborn", "--mem", "1G", tool, "out:ready", "stubborn")
	for _, ref := range []string{polite, stubborn} {
		logs := s.begin(nil, "logs", "-f", ref)
		logs.await(&logs.out, "ready\n")
	}
	if out := s.ok("stop", "--reason", "enough", "polite"); out != "polite\n" {
		t.Errorf("carma stop polite printed %q", out)
	}
	if out := s.ok("stop", "-t", "1", "stubborn"); out != "stubborn\n" {
		t.Errorf("carma stop stubborn printed %q", out)
	}
	for ref, code := range map[string]int{polite: 3, stubborn: 137} {
		task := s.inspect(ref)
		if task.Phase != "cancelled" || task.ExitCode == nil || *task.ExitCode != code || len(task.Attempts) != 1 {
			t.Errorf("task %s is %s, %+v, want cancelled with %d", task.Name, task.Phase, task.Attempts, code)
		}
	}
	if task := s.inspect(polite); !strings.Contains(task.Reason, "enough") {
		t.Errorf("the reason is %q", task.Reason)
	}
	// A shell as the first process of its container gets no stop signal.
	dir := t.TempDir()
	shell := s.submit("--mem", "1G", "--host", "-v", dir+":"+dir, "-w", dir, "--", "sh", "-c", "echo ready; sleep 1000; echo")
	logs := s.begin(nil, "logs", "-f", shell)
	logs.await(&logs.out, "ready\n")
	before := time.Now()
	r := s.carma("stop", "-t", "4", shell)
	if took := time.Since(before); r.code != 0 || took < 4*time.Second || took > 20*time.Second || !strings.Contains(r.err, "it has until its grace is over, then it is killed") {
		t.Errorf("a shell, after %s: %v", took, r)
	}
	if task := s.inspect(shell); task.Phase != "cancelled" || task.ExitCode == nil || *task.ExitCode != 137 {
		t.Errorf("the shell is %s, %+v", task.Phase, task.Attempts)
	}
	s.ok("stop", polite) // a second stop changes nothing
	s.carma("stop", "nobody").refused(t, 2, "no task nobody")
	s.engine.gone(t, s.instance())
	s.verified()
}
