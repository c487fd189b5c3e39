//go:build containerd

package containerd

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"carma/containers"
	"carma/containers/containerstest"
)

// gated makes a container whose program waits for a file that a command writes, and
// returns its folder.
func gated(t *testing.T, d *Driver, tty bool, args ...string) (id, folder string) {
	t.Helper()
	folder = t.TempDir()
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	id, err := d.Create(t.Context(), containers.Spec{
		Name: "carma-suite-" + strings.ToLower(t.Name()), Image: toolRef, Command: args, ContainerOptions: containers.ContainerOptions{TTY: tty},
		Mounts: []containers.Mount{{Source: folder, Target: "/shared"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		own := newDriver(t)
		defer func() { _ = own.Close() }()
		if err := own.Remove(context.Background(), id); err != nil {
			t.Error(err)
		}
	})
	return id, folder
}

// TestCommandLeft: a command whose daemon has ended continues. One that has more output than
// its pipes take waits for the next daemon, which reads it and cleans up.
func TestCommandLeft(t *testing.T) {
	d := newDriver(t)
	id, _ := gated(t, d, false, "gate:/shared/done", "block:3")
	if err := d.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"count:200000", "write:/shared/done"}, {"exit:0"}} {
		if _, err := d.Exec(t.Context(), id, containers.Command{Args: append([]string{containerstest.ToolPath}, args...)}); err != nil {
			t.Fatal(err)
		}
	}
	r, err := d.look(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	_ = d.Close()
	next := newDriver(t)
	defer func() { _ = next.Close() }()
	go func() {
		for {
			left, err := os.ReadDir(r.Labels[labelDir] + "/" + execFolder)
			if err != nil || len(left) == 0 || t.Context().Err() != nil {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		_ = next.Signal(t.Context(), id)
	}()
	if exit, err := next.Wait(t.Context(), id); err != nil || exit.Code != 3 {
		t.Errorf("exit = %+v, %v, want 3", exit, err)
	}
}

// watched is a session's output, which can be waited for.
type watched struct {
	mu   sync.Mutex
	more sync.Cond
	text bytes.Buffer
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.more.Broadcast()
	return w.text.Write(p)
}

func (w *watched) shows(want string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !strings.Contains(w.text.String(), want) {
		w.more.Wait()
	}
}

func watching() *watched {
	w := &watched{}
	w.more.L = &w.mu
	return w
}

// TestTalkOverRestart: containerd is killed while somebody is attached and a command
// runs. Both connections continue.
func TestTalkOverRestart(t *testing.T) {
	d := newDriver(t)
	defer func() { _ = d.Close() }()
	id, _ := gated(t, d, true, "ask:one? ", "ask:two? ", "exit:4")
	session, err := d.Attach(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	screen, over := watching(), make(chan error, 1)
	go func() { over <- session.Copy(screen, screen) }()
	screen.shows("one? ")
	command, err := d.Exec(t.Context(), id, containers.Command{Args: []string{containerstest.ToolPath, "ask:inside? ", "exit:6"}, Stdin: true})
	if err != nil {
		t.Fatal(err)
	}
	inside, done := watching(), make(chan error, 1)
	go func() { done <- command.Copy(inside, inside) }()
	inside.shows("inside? ")
	daemon.Kill()
	for _, w := range []io.Writer{session, command} {
		if _, err := io.WriteString(w, "yes\n"); err != nil {
			t.Fatal(err)
		}
	}
	screen.shows("two? ")
	inside.shows("got yes")
	if err := session.Resize(t.Context(), containers.Size{Rows: 9, Cols: 9}); err != nil && !errors.Is(err, containers.ErrUnavailable) {
		t.Errorf("resize: %v", err)
	}
	if err := command.Signal(t.Context(), syscall.SIGHUP); !errors.Is(err, containers.ErrUnavailable) {
		t.Errorf("signal without containerd: %v", err)
	}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if code, err := command.Wait(t.Context()); err != nil || code != 6 {
		t.Errorf("the command's code %d, %v, want 6", code, err)
	}
	if _, err := io.WriteString(session, "bye\n"); err != nil {
		t.Fatal(err)
	}
	if exit, err := d.Wait(t.Context(), id); err != nil || exit.Code != 4 {
		t.Errorf("exit = %+v, %v, want 4", exit, err)
	}
	if err := <-over; err != nil {
		t.Error(err)
	}
}

// TestNoSession checks the error of attaching to a program that has neither a terminal nor an
// input.
func TestNoSession(t *testing.T) {
	d := newDriver(t)
	id := launch(t, d, "block:0")
	if err := d.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Attach(t.Context(), id); !errors.Is(err, containers.ErrInvalid) {
		t.Errorf("attach: %v", err)
	}
}
