package kubernetes

import (
	"bytes"
	"errors"
	"strings"
	"syscall"
	"testing"

	"carma/containers"
)

// TestExecShell checks that a command in a container with a shell has a folder, an environment
// and signals.
func TestExecShell(t *testing.T) {
	c := newCluster(t, toolImage, hostImage)
	d := c.driver(t, Options{})
	defer d.Close()
	spec := task("a", "block:0")
	spec.Image = hostImage
	id := begin(t, d, spec)
	run := func(cmd containers.Command) (stdout, stderr string, code int) {
		t.Helper()
		s, err := d.Exec(t.Context(), id, cmd)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var out, errs bytes.Buffer
		if err := s.Copy(&out, &errs); err != nil {
			t.Fatal(err)
		}
		if code, err = s.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		return out.String(), errs.String(), code
	}
	dir := t.TempDir()
	odd := `it's "$HOME" and \n` + "`id`\nnext"
	out, errs, code := run(containers.Command{Args: []string{"/bin/sh", "-c", `pwd; printf '%s|' "$ODD" "$1"; echo oops >&2; exit 7`, "x", odd}, Env: []string{"ODD=" + odd}, WorkDir: dir})
	if want := dir + "\n" + odd + "|" + odd + "|"; out != want || errs != "oops\n" || code != 7 {
		t.Errorf("it printed %q and %q, and exited with %d, want %q", out, errs, code, want)
	}
	if out, errs, code := run(containers.Command{Args: []string{"/bin/sh", "-c", "exit 0"}}); out != "" || errs != "" || code != 0 {
		t.Errorf("a silent command: %q %q %d", out, errs, code)
	}
	if _, errs, code := run(containers.Command{Args: []string{"true"}, WorkDir: "/no/such"}); code != 126 || !strings.Contains(errs, "/no/such") {
		t.Errorf("no such folder: %d, %q", code, errs)
	}
	if _, errs, code := run(containers.Command{Args: []string{"/no/such/program"}}); code != 127 || !strings.Contains(errs, "/no/such/program") {
		t.Errorf("no such program: %d, %q", code, errs)
	}
	if _, err := d.Exec(t.Context(), id, containers.Command{Args: []string{"true"}, Env: []string{"a.b=1"}}); !errors.Is(err, containers.ErrInvalid) {
		t.Errorf("a name that no shell takes: %v", err)
	}

	// Not SIGHUP, because a shell under nohup cannot trap it.
	s, err := d.Exec(t.Context(), id, containers.Command{Args: []string{"/bin/sh", "-c", "trap 'echo hung up; exit 9' USR1; echo ready; while :; do read x; done"}, Stdin: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	shown, ended := newText(), make(chan error, 1)
	go func() { ended <- s.Copy(shown, shown) }()
	shown.until(t, "ready\n")
	if err := s.Signal(t.Context(), syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	_, _ = s.Write([]byte("on\n")) // a shell handles signals between two commands
	shown.until(t, "hung up\n")
	if err := <-ended; err != nil {
		t.Errorf("copy: %v", err)
	}
	if code, err := s.Wait(t.Context()); code != 9 || err != nil {
		t.Errorf("code %d, %v", code, err)
	}
	if err := s.Signal(t.Context(), syscall.SIGKILL); err != nil {
		t.Errorf("a signal after the end: %v", err)
	}
}

// text collects output and lets a test wait for a text in it.
type text struct {
	pieces chan string
	all    string
}

func newText() *text { return &text{pieces: make(chan string, 100)} }

func (w *text) Write(p []byte) (int, error) { w.pieces <- string(p); return len(p), nil }

func (w *text) until(t *testing.T, want string) {
	t.Helper()
	for !strings.Contains(w.all, want) {
		select {
		case piece := <-w.pieces:
			w.all += piece
		case <-t.Context().Done():
			t.Fatalf("no %q in %q", want, w.all)
		}
	}
}

// TestAttachSilent checks that a program that waits for input, and printed its prompt before
// the connection existed, gets its input. This also holds if the connection was made before the
// cluster reported the pod as running.
func TestAttachSilent(t *testing.T) {
	c := newCluster(t, toolImage)
	c.told, c.taken = make(chan struct{}), make(chan struct{}, 1)
	d := c.driver(t, Options{})
	defer d.Close()
	spec := task("silent", "input")
	spec.TTY = true
	id, err := d.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	s, err := d.Attach(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	shown := newText()
	go func() { _ = s.Copy(shown, shown) }()
	started := make(chan error, 1)
	go func() { started <- d.Start(t.Context(), id) }()
	<-c.taken
	close(c.told)
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	given := make(chan error, 1)
	go func() { _, err := s.Write([]byte("eve\n")); given <- err }()
	shown.until(t, "got eve")
	if err := <-given; err != nil {
		t.Error(err)
	}
}
