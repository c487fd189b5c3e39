//go:build e2e

package test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"carma/runner/api"
)

// inNamespace runs a program in the engine's network namespace.
func (e *dockerd) inNamespace(name string, args ...string) {
	e.t.Helper()
	type result struct {
		out []byte
		err error
	}
	done := make(chan result)
	e.inside <- func() {
		out, err := exec.Command(name, args...).CombinedOutput()
		done <- result{out, err}
	}
	if r := <-done; r.err != nil {
		e.t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), r.err, r.out)
	}
}

// TestBridgeGone (R4): somebody removes the bridge of a real engine. No task may fail; why and
// doctor must name the cause and the remedy. After a restart of the engine, tasks run again
// without another action.
func TestBridgeGone(t *testing.T) {
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("no ip here")
	}
	e := newDockerd(t)
	e.start()
	e.copyImage(tool)
	s := newServer(t, "--speed", "600", "--backoff", "1s")
	s.useEngine(e)
	s.start()
	s.succeeded(s.submit("--mem", "1G", tool, "out:before"))

	e.inNamespace("ip", "link", "delete", "docker0")
	var refs []string
	for range 5 {
		refs = append(refs, s.submit("--mem", "30G", tool, "out:after"))
	}
	eventually(t, "the engine is known to be sick", func() bool {
		return strings.Contains(s.ok("why", refs[4]), "the network bridge of the containers is gone")
	})
	if r := s.carma("ps"); !strings.Contains(r.err, "to mend it: restart the engine") {
		t.Errorf("ps: %v", r)
	}
	if r := s.carma("doctor"); r.code != 1 || !strings.Contains(r.out, "network bridge") {
		t.Errorf("doctor: %v", r)
	}
	for _, ref := range refs {
		s.until(ref, "waiting", func(t *api.Task) bool { return t.Phase == "queued" || t.Phase == "launching" })
	}

	e.kill()
	e.start()
	s.useEngine(e)
	for _, task := range s.succeeded(refs...) {
		if len(task.Attempts) > 2 {
			t.Errorf("task %d has %d attempts: %+v", task.ID, len(task.Attempts), task.Attempts)
		}
	}
	if r := s.carma("doctor"); r.code != 0 {
		t.Errorf("after it: %v", r)
	}
}

// TestHangUp (F13): on SIGHUP a daemon reads its configuration again; a drained
// one exits with 0.
func TestHangUp(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start()
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	s.logged("read again")
	if r := s.carma("daemon", "--drain", "--data-dir", filepath.Join(s.root, "unused")); r.code != 0 || !strings.Contains(r.err, "starts nothing more") {
		t.Errorf("drain: %v", r)
	}
	select {
	case <-s.exited:
	case <-time.After(patience):
		t.Fatal("the drained daemon does not end")
	}
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("the drained daemon ended with exit code %d", code)
	}
	s.cmd = nil
}
