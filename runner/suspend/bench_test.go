//go:build cgo

package suspend

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// The stand-in is compiled once: libraries by name.
var libraries = map[string]string{}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == HelperCommand {
		os.Exit(RunHelper(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == ProgramCommand {
		os.Exit(RunProgram(os.Args[2:]))
	}
	if os.Getenv(daemonVariable) != "" {
		playDaemon()
		return
	}
	dir, err := os.MkdirTemp("", "carma-suspend-*")
	if err == nil {
		err = compile(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

func compile(dir string) error {
	for name, flags := range map[string][]string{"new": nil, "old": {"-DOLD"}} {
		libraries[name] = filepath.Join(dir, name+".so")
		args := append([]string{"-shared", "-fPIC", "-Wall", "-Werror", "-Wno-unused-function", "-o", libraries[name], "testdata/libcuda.c"}, flags...)
		if out, err := exec.Command("cc", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("cc: %w\n%s", err, out)
		}
	}
	return nil
}

const (
	gpuA = "GPU-0011aabb-2233-4455-6677-8899aabbccdd"
	gpuB = "GPU-ffeeddcc-bbaa-9988-7766-554433221100"
	// patience is a limit that no healthy call reaches.
	patience = 2 * time.Minute
)

var facts = Facts{Driver: "580.95.05", Arch: "amd64"}

// bench is a machine of our own with the stand-in.
type bench struct {
	*testing.T
	dir, root string
	helper    *Helper
	freezer   *fakeFreezer
	s         *Suspender
}

func newBench(t *testing.T) *bench {
	t.Helper()
	return benchIn(t, t.TempDir(), libraries["new"])
}

func benchIn(t *testing.T, dir, library string) *bench {
	b := &bench{T: t, dir: dir, root: filepath.Join(dir, "root")}
	log := zerolog.Nop()
	b.helper = NewHelper(HelperOptions{
		Library: library, LockFile: filepath.Join(dir, "lock"), Env: []string{"STANDIN=" + dir, "GORACE=atexit_sleep_ms=0"}, Start: patience, Log: log,
	})
	if t != nil {
		t.Cleanup(func() {
			if err := b.helper.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	b.freezer = &fakeFreezer{dir: dir}
	b.s = New(Options{
		Driver: b.helper, Freezer: b.freezer, Root: b.root, Log: log,
		Limits: Limits{State: patience, Lock: patience, Copy: patience, Unlock: patience, Freeze: patience},
	})
	return b
}

func (b *bench) write(name, text string) {
	b.Helper()
	path := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(path+"~", []byte(text), 0o644); err != nil {
		b.Fatal(err)
	}
	if err := os.Rename(path+"~", path); err != nil {
		b.Fatal(err)
	}
}

func (b *bench) remove(name string) {
	b.Helper()
	if err := os.RemoveAll(filepath.Join(b.dir, name)); err != nil {
		b.Fatal(err)
	}
}

// id returns a container's name.
func id(n int) string { return fmt.Sprintf("%064x", n) }

// stat returns the text of /proc/PID/stat for a process.
func stat(pid int, state string, started int) string {
	return fmt.Sprintf("%d (py) th) on) %s 1 1 1 0 -1 4194560 1 0 0 0 1 1 0 0 20 0 9 0 %d 1000 10 18446744073709551615\n", pid, state, started)
}

// process makes a process of container n that does not use CUDA.
func (b *bench) process(n, pid int) {
	b.Helper()
	dir := fmt.Sprintf("root/proc/%d/", pid)
	b.write(dir+"stat", stat(pid, "S", 4711))
	b.write(dir+"status", fmt.Sprintf("Name:\tpython\nTgid:\t%d\nPid:\t%d\n", pid, pid))
	b.write(dir+"cgroup", "0::/docker/"+id(n)+"\n")
}

// cuda makes a container with one CUDA process and a worker.
func (b *bench) cuda(n int, state State) (Container, Process) {
	b.Helper()
	pid := 1000 + 10*n
	b.process(n, pid)
	b.process(n, pid+1)
	b.set(pid, state)
	return Container{ID: id(n), PIDs: []int{pid, pid + 1}}, Process{PID: pid, Start: 4711}
}

func (b *bench) set(pid int, state State) {
	b.Helper()
	b.write(fmt.Sprintf("process.%d", pid), fmt.Sprintf("%d %s\n", state, gpuA))
}

// fault plants a fault, such as "code 999 once".
func (b *bench) fault(call Call, what string) {
	b.Helper()
	if !strings.Contains(what, " ") {
		what += " 0"
	}
	b.write("fault."+string(call), what+"\n")
}

// now returns the state of a process as the stand-in has it, and its GPU.
func (b *bench) now(pid int) (State, string) {
	b.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, fmt.Sprintf("process.%d", pid)))
	if err != nil {
		b.Fatal(err)
	}
	number, gpu, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	state, err := strconv.Atoi(number)
	if err != nil {
		b.Fatal(err)
	}
	return State(state), gpu
}

// changes returns the calls that were made, without those for the state.
func (b *bench) changes() string {
	b.Helper()
	text, _ := os.ReadFile(filepath.Join(b.dir, "calls"))
	var out []string
	for line := range strings.Lines(string(text)) {
		if call, _, _ := strings.Cut(line, " "); call != string(CallState) && call != string(CallInit) {
			out = append(out, call)
		}
	}
	return strings.Join(out, " ")
}

// is checks where a task was left.
func (b *bench) is(c Container, r Result, outcome Outcome, state State, frozen bool) {
	b.Helper()
	if now, _ := b.now(c.PIDs[0]); r.Outcome != outcome || now != state {
		b.Errorf("%v and %v; want %v and %v", r.Outcome, now, outcome, state)
	}
	if got, _ := b.freezer.Frozen(b.Context(), c); got != frozen {
		b.Errorf("frozen: %v", got)
	}
}

// ok fails the test if an operation has failed.
func (b *bench) ok(r Result, err error) Result {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// fakeFreezer freezes processes for the stand-in.
type fakeFreezer struct {
	dir string
	mu  sync.Mutex
	// fail are the errors of the next calls: freeze or thaw.
	fail map[string]error
	log  []string
}

func (f *fakeFreezer) Freeze(_ context.Context, c Container) error {
	return f.each("freeze", c, func(path string) error { return os.WriteFile(path, nil, 0o644) })
}

func (f *fakeFreezer) Thaw(_ context.Context, c Container) error {
	return f.each("thaw", c, func(path string) error {
		if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return nil
	})
}

func (f *fakeFreezer) each(name string, c Container, do func(string) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.log = append(f.log, name)
	if err := f.fail[name]; err != nil {
		return err
	}
	for _, pid := range c.PIDs {
		if err := do(filepath.Join(f.dir, fmt.Sprintf("frozen.%d", pid))); err != nil {
			return err
		}
	}
	return nil
}

func (f *fakeFreezer) Frozen(_ context.Context, c Container) (bool, error) {
	if len(c.PIDs) == 0 {
		return false, nil
	}
	_, err := os.Stat(filepath.Join(f.dir, fmt.Sprintf("frozen.%d", c.PIDs[0])))
	return err == nil, nil
}
