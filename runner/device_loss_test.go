package runner

import (
	"context"
	"strings"
	"sync"
	"testing"

	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/gpu"
	"carma/runner/gpu/devices"
	"carma/runner/monitor"
)

// deviceAnswers is a deviceaccess.Checker with answers set by the test. The first processes of the
// containers are 1, 2 and so on, in the order they are found in.
type deviceAnswers struct {
	mu     sync.Mutex
	state  devices.State
	checks int
	hides  bool // no container's process is found
	pids   map[string]int
	spared int // if not 0, processes from this number on can open their devices, whatever state says
}

// of returns the state of a process's devices.
func (a *deviceAnswers) of(pid int) devices.State {
	if a.spared > 0 && pid >= a.spared {
		return devices.Openable
	}
	return a.state
}

func (a *deviceAnswers) set(s devices.State) { a.mu.Lock(); defer a.mu.Unlock(); a.state = s }

func (a *deviceAnswers) Find(names map[string]bool) map[string]int {
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

func (a *deviceAnswers) Rules(pid int, _ []string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return "rules: " + string(a.of(pid))
}

func (a *deviceAnswers) Check(_ context.Context, all []devices.Container) []devices.Result {
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
func (g *rig) loses(a *deviceAnswers, s devices.State) {
	a.set(s)
	g.access.CheckAll()
}

func newAccessRig(t *testing.T, change ...func(*rig)) (*rig, *deviceAnswers) {
	a := &deviceAnswers{state: devices.Openable}
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
	g.eventually("its device was checked", func() bool { return g.access.State(gpu.AttemptKey{Task: 1, Attempt: 1}).State == devices.Openable })
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
	life, err := g.history.Of(g.ctx(), ref)
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
		why, err := g.query.Why(g.ctx(), ref)
		if err != nil || !strings.Contains(why.Summary, "GPU 0 can no longer be opened in the container (the device node is gone) since") {
			t.Errorf("%+v, %v", why, err)
		}
		for range 2 * monitor.MinReadings { // readings with its process do not end it
			samples, err := g.cards.Sample(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			g.access.Follow(samples)
		}
		if rec, _ := g.find.Find(ref); rec.Task.Phase != model.Running {
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
