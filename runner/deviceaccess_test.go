package runner

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/gpu"
	"carma/runner/gpu/devices"
	"carma/runner/monitor"
)

// access is a DeviceChecker with answers set by the test. The first processes of the
// containers are 1, 2 and so on, in the order they are found in.
type access struct {
	mu     sync.Mutex
	state  devices.State
	checks int
	hides  bool // no container's process is found
	pids   map[string]int
	spared int // if not 0, processes from this number on can open their devices, whatever state says
}

// of returns the state of a process's devices.
func (a *access) of(pid int) devices.State {
	if a.spared > 0 && pid >= a.spared {
		return devices.Openable
	}
	return a.state
}

func (a *access) set(s devices.State) { a.mu.Lock(); defer a.mu.Unlock(); a.state = s }

func (a *access) Find(names map[string]bool) map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	found := map[string]int{}
	for name := range names {
		if a.hides {
			continue
		}
		if a.pids[name] == 0 {
			if a.pids == nil {
				a.pids = map[string]int{}
			}
			a.pids[name] = len(a.pids) + 1
		}
		found[name] = a.pids[name]
	}
	return found
}

func (a *access) Rules(pid int, _ []string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return "rules: " + string(a.of(pid))
}

func (a *access) Check(_ context.Context, all []devices.Container) []devices.Result {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.checks++
	out := make([]devices.Result, len(all))
	for i := range out {
		out[i].Nodes = []devices.Node{{Path: "/dev/nvidia0", State: a.of(all[i].PID)}}
	}
	return out
}

// loses sets the state and waits until the daemon has checked it.
func (g *rig) loses(a *access, s devices.State) {
	a.set(s)
	g.access.wake()
}

func newAccessRig(t *testing.T, change ...func(*rig)) (*rig, *access) {
	a := &access{state: devices.Openable}
	return newRig(t, append(change, func(g *rig) { g.opt.DeviceAccess = a })...), a
}

// TestDeviceLost: a task that never used its GPU and can no longer open it is stopped and runs
// again without being at fault, even if its program exits with 0 after the stop signal.
func TestDeviceLost(t *testing.T) {
	box := newMailbox(t)
	g, a := newAccessRig(t, posting())
	g.channels(box.channel("mine", api.NotifyEvents...))
	g.script("train", func(ctx context.Context, _ *containerstest.Process) int { <-ctx.Done(); return 0 })
	ref := g.run(api.Submit{Image: "train", Name: "train", Mem: int64(units.GiB)})
	g.running(ref)
	g.eventually("its device was checked", func() bool { return g.access.state(gpu.AttemptKey{Task: 1, Attempt: 1}).State == devices.Openable })
	a.mu.Lock()
	a.spared = len(a.pids) + 1
	a.mu.Unlock()
	g.loses(a, devices.Denied)
	g.until(ref, "its second attempt", func(t api.Task) bool { return len(t.Attempts) == 2 })
	first := g.running(ref).Attempts[0]
	const loss = "GPU 0 can no longer be opened in the container (device cgroup)"
	if first.Outcome != string(model.ExitInfrastructure) || !strings.HasPrefix(first.Message, loss) || first.Devices != loss {
		t.Errorf("%+v", first)
	}
	life, err := g.History(g.ctx(), ref)
	if err != nil || !strings.Contains(textOf(life), "1: "+loss) {
		t.Errorf("%s, %v", textOf(life), err)
	}
	g.eventually("the messages", func() bool {
		m, n := box.of("train", api.NotifyDevice)
		again, _ := box.of("train", api.NotifyRecovered)
		return n >= 1 && strings.HasPrefix(m.Reason, loss) && strings.Contains(again.Reason, loss)
	})
	if _, err := g.api.Stop(g.ctx(), ref, api.StopRequest{}); err != nil {
		t.Fatal(err)
	}
	g.finished(ref)
}

func textOf(h api.History) string {
	var b strings.Builder
	for _, l := range h.Lines {
		_, _ = b.WriteString(strings.Join([]string{string(rune('0' + l.Attempt)), l.Text}, ": ") + "\n")
	}
	return b.String()
}

// TestDeviceLostInUse: a task with a process on its GPU continues. If it fails, the program is
// not at fault. If it succeeds, the task has succeeded.
func TestDeviceLostInUse(t *testing.T) {
	for code, outcome := range map[int]model.Class{0: model.ExitOK, 1: model.ExitInfrastructure} {
		g, a := newAccessRig(t)
		end := make(chan struct{})
		g.script("train", func(ctx context.Context, p *containerstest.Process) int {
			select {
			case <-end:
				p.Err("RuntimeError: CUDA error: no CUDA-capable device is detected")
				return code
			case <-ctx.Done():
				return 143
			}
		})
		ref := g.run(api.Submit{Image: "train", Mem: int64(units.GiB)})
		g.uses(ref, units.GiB)
		g.eventually("it is seen", func() bool { _, c := g.monitor.Observed(1, 1); return c != nil })
		g.loses(a, devices.Gone)
		g.until(ref, "its loss", func(t api.Task) bool { return t.Attempts[0].Devices != "" })
		why, err := g.Why(g.ctx(), ref)
		if err != nil || !strings.Contains(why.Summary, "GPU 0 can no longer be opened in the container (the device node is gone) since") {
			t.Errorf("%+v, %v", why, err)
		}
		for range 2 * monitor.MinReadings { // readings with its process do not end it
			samples, err := g.cards.Sample(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			g.access.follow(samples)
		}
		if rec, _ := g.Find(ref); rec.Task.Phase != model.Running {
			t.Errorf("it is %s", rec.Task.Phase)
		}
		close(end)
		task := g.until(ref, "its first end", func(t api.Task) bool { return t.Attempts[0].Outcome != "" })
		if got := task.Attempts[0]; got.Outcome != string(outcome) || code == 1 && !strings.Contains(got.Message, "can no longer be opened in the container") {
			t.Errorf("exit code %d: %+v", code, got)
		}
		g.loses(a, devices.Openable)
		if g.finished(ref).Phase == "succeeded" != (code == 0) {
			t.Errorf("exit code %d: it did not end as it should", code)
		}
	}
}

// TestDeviceBack: devices that can be opened again are reported, and a later failure is the
// program's own.
func TestDeviceBack(t *testing.T) {
	g, a := newAccessRig(t)
	end := make(chan struct{})
	g.script("train", func(context.Context, *containerstest.Process) int { <-end; return 3 })
	ref := g.run(api.Submit{Image: "train", Mem: int64(units.GiB)})
	g.uses(ref, units.GiB)
	g.eventually("it is seen", func() bool { _, c := g.monitor.Observed(1, 1); return c != nil })
	g.loses(a, devices.Denied)
	g.until(ref, "its loss", func(t api.Task) bool { return t.Attempts[0].Devices != "" })
	g.stop()
	a.set(devices.Openable)
	g.start()
	g.until(ref, "its return", func(t api.Task) bool { return t.Attempts[0].Devices == "" })
	close(end)
	if got := g.finished(ref); got.Attempts[0].Outcome != string(model.ExitProgram) || got.Phase != "failed" {
		t.Errorf("%+v", got)
	}
}

// TestDeviceLostAcrossRestart: the next daemon uses the observations of an earlier one, if the
// container has ended meanwhile.
func TestDeviceLostAcrossRestart(t *testing.T) {
	g, a := newAccessRig(t)
	end := make(chan struct{})
	g.script("train", func(context.Context, *containerstest.Process) int { <-end; return 1 })
	ref := g.run(api.Submit{Image: "train", Mem: int64(units.GiB)})
	g.uses(ref, units.GiB)
	g.eventually("it is seen", func() bool { _, c := g.monitor.Observed(1, 1); return c != nil })
	g.loses(a, devices.Denied)
	g.until(ref, "its loss", func(t api.Task) bool { return t.Attempts[0].Devices != "" })
	g.stop()
	close(end)
	a.mu.Lock()
	a.hides = true
	a.mu.Unlock()
	g.start()
	task := g.until(ref, "its end", func(t api.Task) bool { return t.Attempts[0].Outcome != "" })
	if got := task.Attempts[0]; got.Outcome != string(model.ExitInfrastructure) {
		t.Errorf("%+v", got)
	}
}

// TestAccessPatience checks the time at which an attempt that lost its devices is ended.
func TestAccessPatience(t *testing.T) {
	key := gpu.AttemptKey{Task: 1, Attempt: 1}
	mine := gpu.Process{PID: 7, Task: 1, Attempt: 1}
	on := func(p ...gpu.Process) []gpu.Sample { return []gpu.Sample{{UUID: "GPU-a", Processes: p}} }
	for name, c := range map[string]struct {
		state  devices.State
		before []gpu.Sample // the reading before the loss
		after  []gpu.Sample
		wait   time.Duration
		ends   bool
	}{
		"never used":                    {devices.Denied, on(), on(), 0, true},
		"the node is gone":              {devices.Gone, on(), on(), 0, true},
		"can be opened":                 {devices.Openable, on(), on(), time.Hour, false},
		"not known":                     {devices.Unknown, on(), on(), time.Hour, false},
		"in use":                        {devices.Denied, on(mine), on(mine), time.Hour, false},
		"used a moment ago":             {devices.Denied, on(mine), on(), accessPatience - time.Second, false},
		"used long ago":                 {devices.Denied, on(mine), on(), accessPatience, true},
		"beside another task":           {devices.Denied, on(), on(gpu.Process{PID: 8, Task: 2, Attempt: 1}), 0, true},
		"beside a process of no number": {devices.Denied, on(), on(gpu.Process{}), time.Hour, false},
		"a GPU with a fault":            {devices.Denied, on(), []gpu.Sample{{UUID: "GPU-a", Fault: "lost"}}, time.Hour, false},
		"no reading":                    {devices.Denied, on(), nil, time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1000, 0)
			d := newDeviceWatch(&access{state: c.state}, func(gpu.AttemptKey, deviceCheck) {})
			d.now = func() time.Time { return now }
			w, stop := d.add(key, []string{"GPU-a"}, deviceCheck{State: devices.Unknown}, false, "box")
			defer stop()
			d.follow(c.before)
			d.round(t.Context())
			for range monitor.MinReadings - 1 {
				d.follow(c.after)
			}
			if w.ended {
				t.Fatal("too early")
			}
			now = now.Add(c.wait)
			if d.follow(c.after); w.ended != c.ends {
				t.Errorf("ended: %v", w.ended)
			}
		})
	}
}

// TestAccessRounds: a container is checked when it is new, when its device rules have changed,
// and when another event requests a check, but at no other time.
func TestAccessRounds(t *testing.T) {
	a := &access{state: devices.Openable}
	var told []devices.State
	d := newDeviceWatch(a, func(_ gpu.AttemptKey, c deviceCheck) { told = append(told, c.State) })
	_, stop := d.add(gpu.AttemptKey{Task: 1, Attempt: 1}, []string{"GPU-a"}, deviceCheck{State: devices.Unknown}, false, "box")
	step := func(what string, checks int) {
		t.Helper()
		if d.round(t.Context()); a.checks != checks {
			t.Errorf("%s: %d checks, want %d", what, a.checks, checks)
		}
	}
	step("it is new", 1)
	step("nothing", 1)
	a.set(devices.Denied)
	step("its rules", 2)
	step("nothing", 2)
	d.checkAll()
	step("asked for", 3)
	d.follow([]gpu.Sample{{UUID: "GPU-a", Warnings: []string{"Xid 94"}}})
	step("an Xid", 4)
	a.set(devices.Unknown)
	step("its rules", 5)
	if got := d.state(gpu.AttemptKey{Task: 1, Attempt: 1}); got.State != devices.Denied {
		t.Errorf("a check that failed has changed it to %+v", got)
	}
	a.set(devices.Openable)
	step("its rules", 6)
	if len(told) != 2 || told[0] != devices.Denied || told[1] != devices.Openable {
		t.Errorf("told: %v", told)
	}
	stop()
	a.set(devices.Denied)
	step("it has ended", 6)
	if _, stop := d.add(gpu.AttemptKey{Task: 2, Attempt: 1}, nil, deviceCheck{State: devices.Unknown}, false, "box"); len(d.of) != 0 {
		stop()
		t.Error("a task without GPUs is checked")
	}
}
