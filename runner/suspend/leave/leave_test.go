package leave

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"carma/runner/suspend"
)

// driver replaces the driver's suspend, and counts its calls.
type driver struct{ calls []string }

func (d *driver) did(what string, as suspend.Outcome) (suspend.Result, error) {
	d.calls = append(d.calls, what)
	return suspend.Result{Outcome: as}, nil
}

func (d *driver) Suspend(context.Context, suspend.Container, suspend.Facts) (suspend.Result, error) {
	return d.did("suspend", suspend.Suspended)
}

func (d *driver) Resume(context.Context, suspend.Container, suspend.Process, suspend.Target) (suspend.Result, error) {
	return d.did("resume", suspend.Runs)
}

func (d *driver) Recover(_ context.Context, _ suspend.Container, want suspend.Outcome, _ suspend.Facts, _ suspend.Target) (suspend.Result, error) {
	return d.did("recover to "+want.String(), want)
}

func (d *driver) Thaw(context.Context, suspend.Container) error {
	_, err := d.did("thaw", suspend.Runs)
	return err
}

func (d *driver) Frozen(context.Context, suspend.Container) (bool, error) {
	_, err := d.did("frozen", suspend.Runs)
	return true, err
}

// bench is a task's folder, and who asks.
type bench struct {
	*testing.T
	f      Folder
	driver *driver
	a      *Asking
	c      suspend.Container
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, f: Folder(filepath.Join(t.TempDir(), "task")), driver: &driver{}}
	if err := b.f.Make(os.Getuid(), os.Getgid()); err != nil {
		t.Fatal(err)
	}
	b.restart()
	return b
}

// restart is a new daemon.
func (b *bench) restart() {
	b.a = &Asking{Driver: b.driver, Limit: 100 * time.Millisecond}
	b.c.Leave = string(b.f)
}

// says writes a file as the program does.
func (b *bench) says(name, line string) {
	b.Helper()
	if err := os.WriteFile(filepath.Join(string(b.f), taskFolder, name), []byte(line), 0o644); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) suspend(want suspend.Outcome, calls ...string) error {
	b.Helper()
	r, err := b.a.Suspend(b.Context(), b.c, suspend.Facts{})
	b.is(r, err, want, calls)
	return err
}

func (b *bench) resume(want suspend.Outcome, calls ...string) error {
	b.Helper()
	r, err := b.a.Resume(b.Context(), b.c, suspend.Process{}, suspend.Target{})
	b.is(r, err, want, calls)
	return err
}

func (b *bench) recover(to, want suspend.Outcome, calls ...string) error {
	b.Helper()
	r, err := b.a.Recover(b.Context(), b.c, to, suspend.Facts{Driver: "580", Arch: "amd64"}, suspend.Target{})
	b.is(r, err, want, calls)
	return err
}

func (b *bench) is(r suspend.Result, err error, want suspend.Outcome, calls []string) {
	b.Helper()
	if got := fmt.Sprint(b.driver.calls); r.Outcome != want || got != fmt.Sprint(calls) {
		b.Errorf("%v (%v), the driver did %s; want %v and %v", r.Outcome, err, got, want, calls)
	}
	b.driver.calls = nil
}

func (b *bench) ordered(want string) {
	b.Helper()
	if o, err := b.f.order(); err != nil || o.String() != want {
		b.Errorf("the order is %v, %v; want %s", o, err, want)
	}
}

// program answers each order after a pause, until the test ends.
func (b *bench) program(answer func(o order) string) {
	b.says(offerFile, offer+"\n")
	ctx, done := b.Context(), make(chan struct{})
	b.Cleanup(func() { <-done })
	go func() {
		defer close(done)
		for last := uint64(0); ctx.Err() == nil; time.Sleep(time.Millisecond) {
			if o, err := b.f.order(); err == nil && o.n > last {
				last = o.n
				b.says(answerFile, answer(o))
			}
		}
	}()
}

func willing(o order) string {
	if o.leave {
		return fmt.Sprintf("left %d\n", o.n)
	}
	return fmt.Sprintf("here %d\n", o.n)
}

func TestNotOffered(t *testing.T) {
	b := newBench(t)
	for _, text := range []string{"", "carma-leave 2", "carma-leave 1 and more", strings.Repeat("x", 10_000)} {
		b.says(offerFile, text)
		b.suspend(suspend.Suspended, "suspend")
		b.resume(suspend.Runs, "resume")
		b.recover(suspend.Suspended, suspend.Suspended, "recover to suspended")
	}
	b.ordered("return 0")
	b.c.Leave = ""
	b.suspend(suspend.Suspended, "suspend")
	if err := b.a.Thaw(t.Context(), b.c); err != nil || len(b.driver.calls) != 1 {
		t.Error(err, b.driver.calls)
	}
	if frozen, err := b.a.Frozen(t.Context(), b.c); !frozen || err != nil || len(b.driver.calls) != 2 {
		t.Error(frozen, err, b.driver.calls)
	}
}

func TestLeaves(t *testing.T) {
	b := newBench(t)
	b.program(willing)
	b.a.Limit = 0
	for n := 1; n < 5; n += 2 {
		b.suspend(suspend.Suspended)
		b.ordered(fmt.Sprint("leave ", n))
		r, err := b.a.Resume(t.Context(), b.c, suspend.Process{}, suspend.Target{Pairs: []suspend.Pair{{Old: "GPU-a", New: "GPU-b"}}})
		if b.is(r, err, suspend.Suspended, nil); !errors.As(err, new(*suspend.Refusal)) {
			t.Error(err)
		}
		b.restart()
		b.recover(suspend.Suspended, suspend.Suspended)
		b.resume(suspend.Runs)
		b.ordered(fmt.Sprint("return ", n+1))
	}
}

// TestCannot checks that the driver suspends a task whose program cannot vacate, and that a
// program that cannot return stays suspended.
func TestCannot(t *testing.T) {
	b := newBench(t)
	no := true
	b.program(func(o order) string {
		if o.leave && no {
			return fmt.Sprintf("cannot %d it is in a graph\x00\n", o.n)
		}
		return willing(o)
	})
	b.suspend(suspend.Suspended, "suspend")
	b.ordered("return 2")
	b.resume(suspend.Runs, "resume")

	b = newBench(t)
	b.program(func(o order) string {
		if o.n == 2 {
			return "cannot 2 CUDA out of memory"
		}
		return willing(o)
	})
	b.suspend(suspend.Suspended)
	if err := b.resume(suspend.Suspended); err == nil || !strings.Contains(err.Error(), `"CUDA out of memory"`) {
		t.Error(err)
	}
	b.ordered("leave 3")
	b.resume(suspend.Runs)
}

// TestSilent: a program that does not answer is ordered to stay on its GPU.
func TestSilent(t *testing.T) {
	b := newBench(t)
	b.says(offerFile, offer)
	b.says(answerFile, "left 7\n") // to nothing that was asked
	b.suspend(suspend.Suspended, "suspend")
	b.ordered("return 2")
	b.says(answerFile, "gone 3\n")
	b.suspend(suspend.Suspended, "suspend")
	b.ordered("return 4")
	go func() { time.Sleep(10 * time.Millisecond); b.says(answerFile, "left 5\n") }()
	b.a.Limit = 20 * time.Second
	b.suspend(suspend.Suspended)
	b.a.Limit = 50 * time.Millisecond
	if err := b.resume(suspend.Suspended); !errors.Is(err, errSlow) {
		t.Error(err)
	}
	b.ordered("leave 7")

	ctx, cancel := context.WithCancel(t.Context())
	b = newBench(t)
	b.says(offerFile, offer)
	b.a.Limit = time.Hour
	time.AfterFunc(20*time.Millisecond, cancel)
	r, err := b.a.Suspend(ctx, b.c, suspend.Facts{})
	if b.is(r, err, suspend.Runs, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	b.ordered("return 2")
}

// TestDaemonDies: the daemon dies between an order and its answer, in both directions.
func TestDaemonDies(t *testing.T) {
	b := newBench(t)
	b.says(offerFile, offer)
	b.recover(suspend.Suspended, suspend.Suspended, "suspend") // it was not asked yet, and does not answer
	b.ordered("return 2")
	b.recover(suspend.Runs, suspend.Runs, "recover to runs")                      // the driver has it
	b.recover(suspend.Suspended, suspend.Suspended, "recover to runs", "suspend") // and may have it again
	b.ordered("return 4")

	b = newBench(t)
	b.says(offerFile, offer)
	if _, err := b.f.give(true); err != nil {
		t.Fatal(err)
	}
	b.says(answerFile, "left 1\n")
	b.recover(suspend.Suspended, suspend.Suspended)
	b.ordered("leave 1")
	b.program(willing)
	b.recover(suspend.Runs, suspend.Runs)
	b.ordered("return 2")
	b.recover(suspend.Runs, suspend.Runs, "recover to runs") // nothing of it is left to do

	b = newBench(t) // returning to its GPU
	b.says(offerFile, offer)
	b.says(answerFile, "left 1\n")
	b.suspend(suspend.Suspended)
	if _, err := b.f.give(false); err != nil {
		t.Fatal(err)
	}
	b.recover(suspend.Suspended, suspend.Suspended, "recover to runs", "suspend") // it answers to nothing
	b.says(answerFile, "left 3\n")
	b.ordered("return 4")
	if r, err := b.a.Recover(t.Context(), b.c, suspend.Runs, suspend.Facts{Driver: "580", Arch: "amd64"}, suspend.Target{}); r.Outcome != suspend.Suspended || !errors.Is(err, errSlow) {
		t.Errorf("it does not return: %v, %v", r.Outcome, err)
	}
	b.ordered("leave 5")

	b = newBench(t) // where no driver can
	b.says(offerFile, offer)
	b.says(answerFile, "left 1\n")
	b.suspend(suspend.Suspended)
	b.program(willing)
	b.resume(suspend.Runs)
	for _, want := range []suspend.Outcome{suspend.Runs, suspend.Suspended} {
		if r, err := b.a.Recover(t.Context(), b.c, want, suspend.Facts{Driver: "550", Arch: "amd64"}, suspend.Target{}); r.Outcome != want || err != nil {
			t.Errorf("%v: %v, %v", want, r.Outcome, err)
		}
	}
	if len(b.driver.calls) > 0 {
		t.Errorf("the driver did %v", b.driver.calls)
	}
}

// TestEnded: the end of the container ends the wait.
func TestEnded(t *testing.T) {
	b := newBench(t)
	b.says(offerFile, offer)
	b.a.Limit = time.Hour
	p := exec.Command("sleep", "0.1")
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	b.c.PIDs = []int{p.Process.Pid}
	b.suspend(suspend.Ended)
	b.resume(suspend.Ended)
	p.Wait()
}

// TestHostile checks that the daemon reads no other file of the machine, and waits for none,
// for any content that the task's user puts into the folder.
func TestHostile(t *testing.T) {
	b := newBench(t)
	inner := filepath.Join(string(b.f), taskFolder)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(offer), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, make := range map[string]func(string) error{
		"link":   func(path string) error { return os.Symlink(secret, path) },
		"pipe":   func(path string) error { return syscall.Mkfifo(path, 0o644) },
		"folder": func(path string) error { return os.Mkdir(path, 0o755) },
	} {
		path := filepath.Join(inner, offerFile)
		if err := make(path); err != nil {
			t.Fatal(err)
		}
		if b.f.Offered() {
			t.Errorf("a %s is an offer", name)
		}
		os.RemoveAll(path)
	}
	if err := os.WriteFile(filepath.Join(string(b.f), orderFile), []byte("dance 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.says(offerFile, offer)
	if r, err := b.a.Suspend(t.Context(), b.c, suspend.Facts{}); err == nil || r.Outcome != suspend.Runs {
		t.Errorf("with a broken order: %v, %v", r.Outcome, err)
	}
	if info, err := os.Stat(string(b.f)); err != nil || info.Mode().Perm() != 0o755 {
		t.Error(info, err)
	}
}

// trainer is a program with the helper of images/torch.
const trainer = `
import sys, time
from leave import Leave
leave = Leave()
leave.offer()
print("offered", flush=True)
while True:
    time.sleep(0.001)
    if leave.asked():
        leave.go(lambda: print("away", flush=True), lambda: print("back", flush=True))
`

// TestPython: the helper for Python speaks the same protocol.
func TestPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3")
	}
	b := newBench(t)
	b.a.Limit = time.Minute
	p := exec.Command(python, "-c", trainer)
	p.Env = append(os.Environ(), "PYTHONPATH=../../../images/torch/carma_train", "PYTHONDONTWRITEBYTECODE=1", "CARMA_LEAVE="+string(b.f))
	p.Stderr = os.Stderr
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Process.Kill(); p.Wait() })
	b.c.PIDs = []int{p.Process.Pid}
	lines := bufio.NewScanner(out)
	for _, want := range []string{"offered", "away", "back", "away", "back"} {
		switch want {
		case "away":
			b.suspend(suspend.Suspended)
		case "back":
			b.restart()
			b.a.Limit = time.Minute
			b.resume(suspend.Runs)
		}
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("%q, want %q", lines.Text(), want)
		}
	}
}
