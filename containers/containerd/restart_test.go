//go:build containerd

package containerd

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/containerd/containerd/api/services/tasks/v1"

	"carma/containers"
	"carma/containers/containerstest"
)

var suiteImages = containerstest.Images{Tool: toolRef, Missing: "localhost:1/carma/missing:1"}

func asDriver(t *testing.T) containers.Driver { return newDriver(t) }

func TestRestarts(t *testing.T) { containerstest.Restarts(t, asDriver, suiteImages, daemon) }

func TestHostOOM(t *testing.T) { containerstest.HostOOM(t, asDriver, suiteImages) }

func TestMemory(t *testing.T) { containerstest.Memory(t, asDriver, suiteImages) }

func TestProcessors(t *testing.T) { containerstest.Processors(t, asDriver, suiteImages) }

func TestPids(t *testing.T) { containerstest.Pids(t, asDriver, suiteImages) }

// launch creates a container of the tool. The test removes it at its end.
func launch(t *testing.T, d *Driver, args ...string) string {
	t.Helper()
	id, err := d.Create(t.Context(), containers.Spec{
		Name: "carma-suite-own-" + strconv.FormatInt(time.Now().UnixNano(), 36), Image: toolRef, Command: args,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Remove(context.Background(), id); err != nil {
			t.Error(err)
		}
		_ = d.Close()
	})
	return id
}

// output is the tool's standard output.
func output(t *testing.T, d *Driver, id string) (lines []string) {
	t.Helper()
	err := d.Logs(t.Context(), id, time.Time{}, true, func(_ time.Time, _ containers.Stream, line []byte, _ bool) {
		lines = append(lines, string(line))
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// TestStartBrokenOff: a start is interrupted at each of its points. The next start must start
// the container exactly once.
func TestStartBrokenOff(t *testing.T) {
	for name, breakOff := range map[string]func(*Driver, string) error{
		"container made": func(d *Driver, id string) error {
			r, err := d.look(t.Context(), id)
			if err != nil {
				return err
			}
			return d.newTask(t.Context(), r, false)
		},
		"start noted": func(d *Driver, id string) error {
			r, err := d.look(t.Context(), id)
			if err != nil {
				return err
			}
			if err := d.newTask(t.Context(), r, false); err != nil {
				return err
			}
			return d.note(t.Context(), id, map[string]string{labelStarted: time.Now().UTC().Format(time.RFC3339Nano)})
		},
		"started": func(d *Driver, id string) error { return d.Start(t.Context(), id) },
		"start noted, engine restarted": func(d *Driver, id string) error {
			r, err := d.look(t.Context(), id)
			if err != nil {
				return err
			}
			if err := d.newTask(t.Context(), r, false); err != nil {
				return err
			}
			if err := d.note(t.Context(), id, map[string]string{labelStarted: time.Now().UTC().Format(time.RFC3339Nano)}); err != nil {
				return err
			}
			daemon.Kill()
			return daemon.Start()
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDriver(t)
			id := launch(t, d, "out:once", "exit:3")
			if err := breakOff(d, id); err != nil {
				t.Fatal(err)
			}
			next := newDriver(t)
			defer func() { _ = next.Close() }()
			for range 2 {
				if err := always(func() error { return next.Start(t.Context(), id) }); err != nil {
					t.Fatal(err)
				}
			}
			if e, err := next.Wait(t.Context(), id); err != nil || e.Code != 3 || e.Lost {
				t.Errorf("Wait = %+v, %v, want code 3", e, err)
			}
			if out := output(t, next, id); len(out) != 1 || out[0] != "once" {
				t.Errorf("output %q, want one line", out)
			}
		})
	}
}

// always repeats a call that fails because the engine does not answer.
func always(f func() error) error {
	for {
		err := f()
		if !errors.Is(err, containers.ErrUnavailable) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestLost: a container whose shim died is lost. It is not started again, and every call
// returns that error.
func TestLost(t *testing.T) {
	d := newDriver(t)
	id := launch(t, d, "out:ready", "stubborn")
	if err := d.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	ready, stop := context.WithCancel(t.Context())
	err := d.Logs(ready, id, time.Time{}, true, func(time.Time, containers.Stream, []byte, bool) { stop() })
	stop()
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	daemon.Kill()
	pid, err := os.ReadFile(filepath.Join(daemon.Root, "state/io.containerd.runtime.v2.task", DefaultNamespace, id, "init.pid"))
	if err != nil {
		t.Fatal(err)
	}
	stat, err := os.ReadFile("/proc/" + string(pid) + "/status")
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(parent(t, string(stat)), syscall.SIGKILL); err != nil { // the shim
		t.Fatal(err)
	}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	// A daemon that does not know this yet starts it again.
	if err := always(func() error { return d.Start(t.Context(), id) }); err != nil {
		t.Errorf("start: %v", err)
	}
	var exit containers.Exit
	if err := always(func() (err error) { exit, err = d.Wait(t.Context(), id); return err }); err != nil {
		t.Fatal(err)
	}
	if exit.Code != 255 || !exit.Lost || exit.Started.IsZero() || exit.Finished.Before(exit.Started) {
		t.Errorf("exit = %+v, want a lost one", exit)
	}
	if v := containers.Classify(exit, nil, containers.Facts{}); v.Class != containers.ClassInfrastructure {
		t.Errorf("classified as %s", v.Class)
	}
	if again, err := d.Wait(t.Context(), id); err != nil || again != exit {
		t.Errorf("Wait again = %+v, %v", again, err)
	}
	if out := output(t, d, id); len(out) != 1 || out[0] != "ready" {
		t.Errorf("output %q, want one line", out)
	}
}

// parent reads the parent of a process from the text of its status file.
func parent(t *testing.T, status string) int {
	t.Helper()
	for _, line := range strings.Split(status, "\n") {
		if len(line) > 6 && line[:6] == "PPid:\t" {
			n, err := strconv.Atoi(line[6:])
			if err != nil || n < 2 {
				t.Fatalf("parent %q", line)
			}
			return n
		}
	}
	t.Fatal("no parent")
	return 0
}

// TestRemoveBrokenOff: a container that is being removed is not found. The next
// Remove or Create finishes the removal and frees the name.
func TestRemoveBrokenOff(t *testing.T) {
	d := newDriver(t)
	id := launch(t, d, "out:one", "block:0")
	if err := d.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if err := d.note(t.Context(), id, map[string]string{labelRemoving: "yes"}); err != nil {
		t.Fatal(err)
	}
	if err := d.Start(t.Context(), id); !errors.Is(err, containers.ErrNotFound) {
		t.Errorf("start: %v, want not found", err)
	}
	if _, err := d.Wait(t.Context(), id); !errors.Is(err, containers.ErrNotFound) {
		t.Errorf("wait: %v, want not found", err)
	}
	if _, err := d.Create(t.Context(), containers.Spec{Name: id, Image: toolRef, Command: []string{"out:two"}}); err != nil {
		t.Fatal(err)
	}
	if err := d.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if out := output(t, d, id); len(out) != 1 || out[0] != "two" {
		t.Errorf("output %q, want that of the second", out)
	}
}

func TestEngineAway(t *testing.T) {
	o := options()
	o.Address = filepath.Join(t.TempDir(), "none.sock")
	d, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	ctx := t.Context()
	_, ping := d.Ping(ctx)
	_, image := d.Image(ctx, toolRef)
	_, create := d.Create(ctx, containers.Spec{Name: "carma-suite-never", Image: toolRef})
	_, list := d.List(ctx, nil)
	_, wait := d.Wait(ctx, "x")
	logs := d.Logs(ctx, "x", time.Time{}, true, func(time.Time, containers.Stream, []byte, bool) {})
	for _, err := range []error{ping, image, create, list, wait, logs, d.Pull(ctx, toolRef, containers.Credential{}), d.Start(ctx, "x"), d.Signal(ctx, "x"), d.Kill(ctx, "x"), d.Remove(ctx, "x")} {
		if !errors.Is(err, containers.ErrUnavailable) {
			t.Errorf("without containerd: %v, want ErrUnavailable", err)
		}
	}
}

// TestTaskLeft: deleting the task of an ended container ends its logger and its shim,
// even if nobody waits for it.
func TestTaskLeft(t *testing.T) {
	d := newDriver(t)
	id := launch(t, d, "out:one")
	if err := d.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Wait(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	_, err := d.cli.TaskService().Get(t.Context(), &tasks.GetRequest{ContainerID: id})
	if err == nil {
		t.Error("its task is still there")
	}
	if out := output(t, d, id); len(out) != 1 || out[0] != "one" {
		t.Errorf("output %q", out)
	}
}
