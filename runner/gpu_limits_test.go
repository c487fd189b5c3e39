package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/clock"
	"carma/runner/gpu"
	"carma/runner/journal"
	"carma/runner/limiter"
	"carma/runner/limits"
	"carma/runner/limits/standin"
	"carma/runner/tasklog"

	"github.com/rs/zerolog"
)

// limitRig is a rig on a machine with a driver that limits control groups. A program simulates
// the driver. The groups of the first ten containers exist from the start.
type limitRig struct {
	*rig
	root string
	smi  *standin.SMI
}

func newLimitRig(t *testing.T, version string, change ...func(*rig)) *limitRig {
	t.Helper()
	l := &limitRig{root: t.TempDir()}
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(l.root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("sys/fs/cgroup/cgroup.controllers", "memory\n")
	for n := 1; n <= 10; n++ {
		write(fmt.Sprintf("proc/%d/cgroup", containerstest.ParkedPID(n)), fmt.Sprintf("0::/carma/c%d\n", n))
		write(fmt.Sprintf("sys/fs/cgroup/carma/c%d/cgroup.procs", n), "")
	}
	var err error
	if l.smi, err = standin.New(t.TempDir(), l.root, version); err != nil {
		t.Fatal(err)
	}
	l.rig = newRig(t, append([]func(*rig){func(g *rig) {
		g.opt.Init = "/usr/lib/carma/carma-init"
		g.opt.Limits = limiter.Options{
			Mode: limiter.ModeAuto, Caps: limiter.CapsGrowth, User: func() int { return 0 },
			Keeper: &limits.Keeper{Root: l.root, Dir: filepath.Join(g.dir, "limits"), Tool: limits.Tool{Path: l.smi.Path}},
		}
	}}, change...)...)
	l.script("train", func(_ context.Context, p *containerstest.Process) int {
		if err := l.smi.Note("program"); err != nil {
			t.Error(err)
		}
		return 0
	})
	return l
}

func (l *limitRig) calls(want ...string) {
	l.t.Helper()
	if got, err := l.smi.Calls(); err != nil || !slices.Equal(got, want) {
		l.t.Errorf("calls %q, %v, want %q", got, err, want)
	}
}

// nothingLeft checks that no limit is stored and nothing is reserved.
func (l *limitRig) nothingLeft() {
	l.t.Helper()
	if files, err := filepath.Glob(filepath.Join(l.opt.Limits.Keeper.Dir, "*")); err != nil || len(files) != 0 {
		l.t.Errorf("noted: %q, %v", files, err)
	}
	for _, gpu := range []string{"GPU-a", "GPU-b"} {
		if n, err := l.smi.Guaranteed(gpu); err != nil || n != 0 {
			l.t.Errorf("%d MiB of %s stay reserved, %v", n, gpu, err)
		}
	}
}

// TestDriverLimit: a task is limited to its grant on each of its GPUs before its program
// runs. Memory that this reserves is released at its end. A task alone on its GPUs is not
// limited.
func TestDriverLimit(t *testing.T) {
	l := newLimitRig(t, "615.36.01")
	l.finished(l.run(api.Submit{Image: "train", GPUs: 2, Mem: int64(3 * units.GiB)}))
	got, err := l.smi.Calls()
	if err != nil || len(got) != 5 {
		t.Fatalf("calls %q, %v", got, err)
	}
	slices.Sort(got[:2]) // the mapper decides the order of the GPUs
	slices.Sort(got[3:])
	want := []string{"set GPU-a c1 3072 3072", "set GPU-b c1 3072 3072", "program", "set GPU-a c1 0 max", "set GPU-b c1 0 max"}
	if !slices.Equal(got, want) {
		t.Errorf("calls %q, want %q", got, want)
	}
	l.nothingLeft()
	l.finished(l.run(api.Submit{Image: "train", Exclusive: true}))
	if all, err := l.smi.Calls(); err != nil || len(all) != 6 {
		t.Errorf("alone: calls %q, %v", all, err)
	}
}

// TestDriverLimitBurst: a task may use free memory above its grant, which is guaranteed. MPS
// then does not limit it to the grant.
func TestDriverLimitBurst(t *testing.T) {
	long(t)
	l := newLimitRig(t, "615.1", withMPS(t), byMemory, func(g *rig) {
		g.opt.Limits.Burst = true
		g.opt.Mapper.Headroom = units.GiB
		g.cards = newCards(1, 40*units.GiB)
	})
	env := make(chan []string, 1)
	l.script("look", func(_ context.Context, p *containerstest.Process) int { env <- p.Spec.Env; return 0 })
	l.script("stay", untilStopped)
	first := l.run(api.Submit{Image: "stay", Mem: int64(10 * units.GiB)})
	l.running(first)
	l.finished(l.run(api.Submit{Image: "look", Mem: int64(3 * units.GiB)}))
	l.calls("set GPU-a c1 10240 39936", "set GPU-a c2 3072 29696", "set GPU-a c2 0 max")
	for _, kv := range <-env {
		if strings.HasPrefix(kv, "CUDA_MPS_PINNED") {
			t.Errorf("stopped at its grant all the same: %s", kv)
		}
	}
	if n, err := l.smi.Guaranteed("GPU-a"); err != nil || n != 10240 {
		t.Errorf("%d MiB reserved, %v", n, err)
	}
}

// TestDriverLimitRestart: if a task ends while no daemon runs, the next daemon
// clears its limit.
func TestDriverLimitRestart(t *testing.T) {
	l := newLimitRig(t, "615.1")
	end := make(chan bool)
	l.script("wait", func(context.Context, *containerstest.Process) int { <-end; return 0 })
	ref := l.run(api.Submit{Image: "wait", Mem: int64(3 * units.GiB)})
	l.running(ref)
	l.stop()
	close(end)
	if n, err := l.smi.Guaranteed("GPU-a"); err != nil || n != 3072 {
		t.Errorf("%d MiB reserved meanwhile, %v", n, err)
	}
	l.start()
	l.finished(ref)
	l.eventually("it is cleared", func() bool { n, err := l.smi.Guaranteed("GPU-a"); return err == nil && n == 0 })
	l.nothingLeft()
}

// TestDriverLimitParked: if a daemon ends while a task is parked, the task stays parked.
// The next daemon limits it and starts its program, once.
func TestDriverLimitParked(t *testing.T) {
	long(t)
	l := newLimitRig(t, "615.1")
	for range 4 { // each is repeated after a pause
		l.engine.FailNext(containerstest.OpStart, fmt.Errorf("start: %w", containers.ErrUnavailable))
	}
	ref := l.run(api.Submit{Image: "train", Mem: int64(3 * units.GiB)})
	l.eventually("it is parked and was to start", func() bool { return l.engine.Calls(containerstest.OpStart) > 0 })
	l.engine.Down()
	l.stop()
	l.calls("set GPU-a c1 3072 3072")
	l.engine.Up()
	l.start()
	l.finished(ref)
	l.calls("set GPU-a c1 3072 3072", "set GPU-a c1 3072 3072", "program", "set GPU-a c1 0 max")
	l.nothingLeft()
}

// TestDriverLimitRefused: if a task cannot be limited, it runs without a limit under auto.
// Under driver it waits without losing an attempt.
func TestDriverLimitRefused(t *testing.T) {
	for mode, ran := range map[string]bool{limiter.ModeAuto: true, limiter.ModeDriver: false} {
		l := newLimitRig(t, "615.1", func(g *rig) { g.opt.Limits.Mode, g.opt.Mapper.BlamelessRetries = mode, 1 })
		if err := l.smi.Break(true); err != nil {
			t.Fatal(err)
		}
		ref := l.run(api.Submit{Image: "train", Mem: int64(3 * units.GiB)})
		task := l.until(ref, "at its end, or waiting for the driver", func(t api.Task) bool {
			last := len(t.Attempts) - 1
			return t.Finished() || last >= 0 && t.Attempts[last].Starts >= 3
		})
		calls, err := l.smi.Calls()
		if err != nil || slices.Contains(calls, "program") != ran || (task.Phase == "succeeded") != ran {
			t.Errorf("%s: %s, calls %q, %v", mode, task.Phase, calls, err)
		}
		if last := task.Attempts[len(task.Attempts)-1]; !ran && (last.Outcome != "infrastructure" || !strings.Contains(last.Message, "could not be limited")) {
			t.Errorf("%s: %+v", mode, last)
		}
	}
}

// TestDriverLimitWhere: if the driver cannot limit, nothing is limited, and
// doctor says why. A daemon that must limit does not start then.
func TestDriverLimitWhere(t *testing.T) {
	long(t)
	for _, row := range []struct {
		name, version string
		change        func(*rig)
		line, why     string
		start         bool // under memory-limit: driver
	}{
		{"can", "615.1", func(*rig) {}, "GPU 0, 1: driver limit per container, frameworks grow (JAX, TensorFlow), watchdog: relaunch", "no MPS limit: MPS is off", true},
		{"burst", "615.1", func(g *rig) { g.opt.Limits.Burst = true }, "driver limit per container, up to the free room", "", true},
		{"old", "580.95.05", func(*rig) {}, "GPU 0, 1: frameworks grow", "no driver limit: driver 580.95.05 is too old", false},
		{"user", "615.1", func(g *rig) { g.opt.Limits.User = func() int { return 1000 } }, "GPU 0, 1: frameworks grow", "only root", false},
		{"simulated", "615.1", func(g *rig) { g.opt.Speed, g.opt.SetSpeed = 1, func(float64) {} }, "GPU 0, 1: frameworks grow", "the GPUs are simulated", false},
		{"MIG", "615.1", func(g *rig) { g.cards.devices[0].Parent = "GPU-card" }, "GPU 1: driver limit", "GPU 0: frameworks grow (JAX, TensorFlow), watchdog: relaunch (no driver limit: a MIG instance has none", false},
		{"fractions", "580.1", func(g *rig) { g.opt.Limits.Caps = limiter.CapsFractions }, "framework caps (JAX, PyTorch)", "too old", false},
		{"MPS", "580.1", withMPS(t), "GPU 0, 1: MPS limit per process of tasks on one GPU, frameworks grow", "too old", false},
		{"nothing", "580.1", func(g *rig) { g.opt.Limits.Caps, g.opt.Mapper.Watchdog = limiter.CapsOff, "off" }, "GPU 0, 1: nothing (", "too old", false},
		{"off", "615.1", func(g *rig) { g.opt.Limits.Mode = limiter.ModeOff }, "GPU 0, 1: frameworks grow", "memory-limit is off", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			l := newLimitRig(t, row.version, row.change)
			checks, err := l.api.Doctor(l.ctx())
			at := slices.IndexFunc(checks, func(c api.Check) bool { return c.Name == "GPU memory limits" })
			if err != nil || at < 0 || !strings.Contains(checks[at].Detail, row.line) || !strings.Contains(checks[at].Detail, row.why) ||
				(checks[at].Status == "warning") != (row.name == "nothing") {
				t.Errorf("doctor says %+v, %v", checks, err)
			}
			if row.name == "MIG" { // the task on the whole card is limited, the task on the instance is not
				l.onlyFree(1)
				l.finished(l.run(api.Submit{Image: "train", Mem: int64(units.GiB)}))
				l.onlyFree(0)
				l.finished(l.run(api.Submit{Image: "train", Mem: int64(units.GiB)}))
				l.calls("set GPU-b c1 1024 1024", "program", "set GPU-b c1 0 max", "program")
			}
			l.stop()
			if row.name != "off" {
				l.opt.Limits.Mode = limiter.ModeDriver
			}
			if err := l.tryNew(); (err == nil) != row.start {
				t.Errorf("under memory-limit %s: %v", l.opt.Limits.Mode, err)
			}
		})
	}
}

// tryNew makes a daemon and returns the error.
func (l *limitRig) tryNew() error {
	j, err := journal.Open(l.dir)
	if err != nil {
		l.t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	_, err = New(l.ctx(), l.opt, Deps{
		Journal: j, Logs: tasklog.Open(filepath.Join(l.dir, "logs"), 0), Driver: l.engine, GPUs: l.cards,
		Clock: clock.New(1), Estimator: l.estimator, Log: zerolog.Nop(),
	})
	var cannot *limiter.CannotLimitError
	if err != nil && !errors.As(err, &cannot) {
		l.t.Errorf("%v is no CannotLimitError", err)
	}
	return err
}

// TestPromisedIsNotForeign: memory that the driver reserves for a task may count as used before
// the task uses it. It must not count as memory of other processes, even after a restart. Used
// memory that is neither reserved nor a task's must count.
func TestPromisedIsNotForeign(t *testing.T) {
	long(t)
	l := newLimitRig(t, "615.36.01", byMemory)
	l.script("stay", untilStopped)
	ref := l.run(api.Submit{Image: "stay", Mem: int64(10 * units.GiB)})
	l.running(ref)
	on := func(uuid string) (g model.GPU) {
		_ = l.loop.Look(l.ctx(), func(s *mapper.State) {
			for _, one := range s.GPUs() {
				if string(one.ID) == uuid {
					g = one
				}
			}
		})
		return g
	}
	use := func(used units.Bytes, others units.Bytes) {
		l.cards.set(gpu.Sample{UUID: "GPU-a", Used: used, Processes: []gpu.Process{
			{PID: 1, Task: 1, Attempt: 1, Used: 2 * units.GiB}, {PID: 2, Used: others},
		}})
	}
	for _, restart := range []bool{false, true} {
		if restart {
			l.restart()
		}
		for _, tc := range []struct{ used, others, want units.Bytes }{
			{10, 0, 0}, // 8 GiB are reserved
			{11, 0, 1}, // and 1 GiB belongs to another process
			{6, 1, 1},  // of a process outside carma
			{14, 3, 4}, // and more
			{2, 0, 0},  // nothing is reserved, or the driver does not count reserved memory
			{12, 12, 10},
		} {
			use(tc.used*units.GiB, tc.others*units.GiB)
			l.eventually(fmt.Sprintf("restarted %v: %d GiB used, %d of processes of others: %d foreign, not %s", restart, tc.used, tc.others, tc.want, on("GPU-a").OtherProcesses), func() bool {
				g := on("GPU-a")
				return g.Used == tc.used*units.GiB && g.OtherProcesses == tc.want*units.GiB
			})
		}
	}
}
