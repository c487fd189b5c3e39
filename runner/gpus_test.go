package runner

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/clock"
	"carma/runner/gpu"

	"github.com/rs/zerolog"
	"pgregory.net/rapid"
)

// process makes the files of a process in a container.
func (g *rig) process(pid int, container string) {
	g.t.Helper()
	dir := filepath.Join(g.proc, "proc", strconv.Itoa(pid))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		g.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "cgroup"), []byte("0::/carma/"+container+"\n"), 0o644); err != nil {
		g.t.Fatal(err)
	}
}

// TestProcessesAreAttributed: the memory of a task's processes is the task's,
// also for a daemon that was restarted. The rest is foreign.
func TestProcessesAreAttributed(t *testing.T) {
	g := newRig(t, func(g *rig) { g.proc = t.TempDir() })
	g.script("train", untilStopped)
	ref := g.run(api.Submit{Image: "train", Mem: int64(10 * units.GiB)})
	g.running(ref)
	all := g.containers()
	if len(all) != 1 {
		t.Fatalf("%d containers", len(all))
	}
	g.process(100, all[0].ID)
	g.process(101, all[0].ID)
	g.process(102, "somebody-elses")
	g.cards.set(gpu.Sample{UUID: "GPU-a", Used: 12 * units.GiB, Processes: []gpu.Process{
		{PID: 100, Used: 4 * units.GiB}, {PID: 101, Used: 2 * units.GiB}, {PID: 102, Used: 5 * units.GiB}, {PID: 103, Used: units.GiB},
	}})
	seen := func() bool {
		gpus, err := g.api.GPUs(g.ctx())
		return err == nil && len(gpus[0].Tasks) == 1 && gpus[0].Tasks[0].Used == int64(6*units.GiB) && gpus[0].Foreign == int64(6*units.GiB)
	}
	g.eventually("the task has its processes", seen)
	g.restart()
	g.eventually("the task has its processes again", seen)
	if _, err := g.api.Stop(g.ctx(), ref, api.StopRequest{}); err != nil {
		t.Fatal(err)
	}
	task := g.finished(ref)
	if peak := task.Attempts[0].Peak; peak != int64(6*units.GiB) {
		t.Errorf("its peak is %d, want that of its processes together", peak)
	}
	g.eventually("its container is forgotten", func() bool {
		g.Runner.owners.mu.Lock()
		defer g.Runner.owners.mu.Unlock()
		return len(g.Runner.owners.of) == 0
	})
}

// TestFaultDrains: a GPU with a fault gets no tasks and says why. It is used
// again when the fault is over.
func TestFaultDrains(t *testing.T) {
	g := newRig(t)
	const fault = "it has fallen off the bus (Xid 79); to mend it: restart the machine"
	for _, d := range g.cards.devices {
		g.cards.set(gpu.Sample{UUID: d.UUID, Fault: fault})
	}
	g.eventually("the GPUs are out of service", func() bool {
		gpus, err := g.api.GPUs(g.ctx())
		return err == nil && gpus[0].Fault == fault && gpus[1].Fault == fault
	})
	g.script("ok", printing(0))
	ref := g.run(api.Submit{Image: "ok", Mem: int64(units.GiB)})
	why, err := g.api.Why(g.ctx(), ref)
	if err != nil || why.Position != 1 || why.GPUs[1].Rule != "fault" || !strings.Contains(why.Summary, fault) {
		t.Fatalf("why is %+v, %v", why, err)
	}
	checks, err := g.api.Doctor(g.ctx())
	if i := slices.IndexFunc(checks, func(c api.Check) bool { return c.Name == "GPU health" }); err != nil || i < 0 || checks[i].Status != "failure" || !strings.Contains(checks[i].Detail, "GPU 1: "+fault) {
		t.Errorf("doctor says %+v, %v", checks, err)
	}
	for _, d := range g.cards.devices {
		g.cards.set(gpu.Sample{UUID: d.UUID})
	}
	g.finished(ref)
}

func TestGPUDetails(t *testing.T) {
	g := newRig(t, func(g *rig) {
		g.cards.devices[1].Parent = "GPU-card"
		g.cards.notes = []string{"GPU 7 is left out: it has no UUID"}
	})
	g.cards.set(gpu.Sample{UUID: "GPU-a", SMACT: 0.9, Metrics: gpu.MetricsUtilization, Coarse: true, TemperatureC: 61, ECCErrors: 2, Warnings: []string{"slowed down because it is too hot"}})
	g.cards.set(gpu.Sample{UUID: "GPU-b", Metrics: gpu.MetricsGPM})
	var gpus []api.GPU
	g.eventually("the monitor has seen both", func() (ok bool) {
		var err error
		gpus, err = g.api.GPUs(g.ctx())
		return err == nil && gpus[0].Metrics != "" && gpus[1].Metrics != ""
	})
	a, b := gpus[0], gpus[1]
	if a.Metrics != "utilization" || !a.Coarse || a.TemperatureC != 61 || a.ECCErrors != 2 || len(a.Warnings) != 1 || a.Parent != "" || b.Metrics != "gpm" || b.Coarse || b.Parent != "GPU-card" {
		t.Errorf("GPUs %+v and %+v", a, b)
	}
	checks, err := g.api.Doctor(g.ctx())
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"GPU health":   "GPU 0: slowed down because it is too hot; GPU 7 is left out: it has no UUID",
		"GPU activity": "from utilization on GPU 0; from gpm on GPU 1: the share of time any kernel runs, not how busy the SMs are",
	} {
		i := slices.IndexFunc(checks, func(c api.Check) bool { return c.Name == name })
		if i < 0 || checks[i].Status != "warning" || checks[i].Detail != want {
			t.Errorf("%s: %+v", name, checks)
		}
	}
}

// TestCoarseActivity: the mapper learns that activity is coarse. A bound and an activity
// are not averaged.
func TestCoarseActivity(t *testing.T) {
	m := newTestMonitor(newCards(1, 40*units.GiB))
	for i, row := range []struct {
		smact  float64
		coarse bool
		want   float64
	}{{1, true, 1}, {0.2, false, 0.2}, {0.4, false, 0.3}, {0.9, true, 0.9}, {0.9, true, 0.9}} {
		got := m.digest(units.Instant(i), gpu.Sample{UUID: "GPU-a", SMACT: row.smact, Coarse: row.coarse})
		if got.Coarse != row.coarse || got.SMACT != row.want {
			t.Errorf("reading %d: coarse %v, SMACT %v, want %v and %v", i, got.Coarse, got.SMACT, row.coarse, row.want)
		}
	}
	a, b := model.GPUSample{ID: "GPU-a", SMACT: 0.5}, model.GPUSample{ID: "GPU-a", SMACT: 0.5, Coarse: true}
	if equalGPUSample(&a, &b) {
		t.Error("a bound and an activity tell the same")
	}
}

// TestExporterAdvice: a dcgm-exporter is recommended only if it would give more.
func TestExporterAdvice(t *testing.T) {
	long(t)
	for model, helps := range map[string]bool{
		"NVIDIA GeForce RTX 3090": false, "NVIDIA GeForce RTX 4090": false, "NVIDIA GeForce GTX 1080 Ti": false,
		"NVIDIA GeForce RTX 5090": true, "NVIDIA A100-SXM4-40GB": true, "NVIDIA RTX A6000": true,
	} {
		g := newRig(t, func(g *rig) { g.cards.devices[0].Model = model })
		g.cards.set(gpu.Sample{UUID: "GPU-a", Metrics: gpu.MetricsUtilization, Coarse: true})
		g.cards.set(gpu.Sample{UUID: "GPU-b", Metrics: gpu.MetricsGPM})
		g.eventually("the monitor has seen it", func() bool {
			gpus, err := g.api.GPUs(g.ctx())
			return err == nil && gpus[0].Metrics != "" && gpus[1].Metrics != ""
		})
		c := g.checkMetrics()
		if got := strings.Contains(c.Mend, "dcgm-exporter"); got != helps || (c.Status == "warning") != helps {
			t.Errorf("%s: %+v", model, c)
		}
	}
}

func newTestMonitor(c *cards) *monitor {
	return newMonitor(c, clock.New(1), time.Second, zerolog.Nop())
}

// TestUnreadable: GPUs that cannot be read for long get no tasks.
func TestUnreadable(t *testing.T) {
	c := newCards(2, 40*units.GiB)
	c.SetOwner(newOwners().owner)
	m := newTestMonitor(c)
	failure := errors.New("the driver does not answer")
	now := time.Now()
	c.set(gpu.Sample{UUID: "GPU-a", Used: 3 * units.GiB})
	before, ok := m.sample(t.Context())
	if !ok {
		t.Fatal("no sample")
	}
	for _, after := range []time.Duration{0, unreadable - time.Second} {
		if ev, ok := m.unread(failure, now.Add(after)); ok {
			t.Errorf("after %v: %+v", after, ev)
		}
	}
	var last model.Sampled
	for i := range 2 {
		ev, ok := m.unread(fmt.Errorf("%w %d", failure, i), now.Add(unreadable+time.Duration(i)*time.Second))
		if !ok || ev.GPUs[0].Fault != "it cannot be read: the driver does not answer 0" || ev.GPUs[1].Fault == "" || ev.GPUs[0].Used != 3*units.GiB {
			t.Errorf("after %v: %+v", unreadable, ev)
		}
		if i > 0 && !alike(last, ev) {
			t.Errorf("the journal gets a further event: %+v", ev)
		}
		last = ev
	}
	after, ok := m.sample(t.Context())
	if !ok || !alike(before, after) {
		t.Errorf("readable again: %+v, before %+v", after, before)
	}
	if _, ok := m.unread(failure, now.Add(time.Hour)); ok {
		t.Error("the second time it does not wait")
	}
}

// TestPeaks: a task's peak on a GPU is the sum of its processes' peaks.
func TestPeaks(t *testing.T) {
	m := newTestMonitor(newCards(1, 40*units.GiB))
	for _, used := range []units.Bytes{1, 5, 2} {
		m.watch(0, []gpu.Sample{{UUID: "GPU-a", Used: 2 * used, Processes: []gpu.Process{
			{PID: 1, Task: 7, Attempt: 1, Used: used}, {PID: 2, Task: 7, Attempt: 1, Used: used}, {PID: 3, Task: 8, Attempt: 2, Used: 1, Peak: 9},
		}}}, time.Now())
	}
	if a, b := peakOf(m, 7, 1), peakOf(m, 8, 2); a != 10 || b != 9 {
		t.Errorf("peaks %d and %d, want 10 and 9", a, b)
	}
}

func TestRisk(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   float64
	}{
		{nil, 0}, {[]float64{0.4}, 0.4}, {[]float64{0.4, 0.4, 0.4}, 0.4},
		// mean 0.5, median 0.5, p95 0.95; EMA with alpha 2/3: 0 then 2/3.
		{[]float64{0, 1}, 0.20*0.5 + 0.30*0.5 + 0.30*0.95 + 0.20*2/3},
		// The same in reverse: only the EMA differs.
		{[]float64{1, 0}, 0.20*0.5 + 0.30*0.5 + 0.30*0.95 + 0.20*1/3},
		// mean 0.25, median 0, p95 0.85; EMA with alpha 0.4: 0, 0, 0, 0.4.
		{[]float64{0, 0, 0, 1}, 0.20*0.25 + 0.30*0.85 + 0.20*0.4},
	} {
		if got := risk(tt.values); math.Abs(got-tt.want) > 1e-12 {
			t.Errorf("risk of %v is %v, want %v", tt.values, got, tt.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.Float64Range(0, 1), 1, 40).Draw(t, "readings")
		if got := risk(v); got < slices.Min(v)-1e-9 || got > slices.Max(v)+1e-9 {
			t.Fatalf("risk of %v is %v", v, got)
		}
	})
}

// TestActivityOption: the monitor uses the score that the option names.
func TestActivityOption(t *testing.T) {
	for word, want := range map[string]float64{"": 0.5, "mean": 0.5, "risk": 0.67} { // see TestRisk
		c := newCards(1, 40*units.GiB)
		m := newTestMonitor(c)
		var err error
		if m.score, err = scoreOf(word); err != nil {
			t.Fatal(err)
		}
		m.digest(0, gpu.Sample{UUID: "GPU-a"})
		got := m.digest(1, gpu.Sample{UUID: "GPU-a", SMACT: 1, SMOCC: 1, DRAMA: 1})
		if got.SMACT != want || got.SMOCC != want || got.DRAMA != want {
			t.Errorf("%q: %+v, want %v", word, got, want)
		}
	}
	if _, err := scoreOf("median"); err == nil {
		t.Error("an unknown word is taken")
	}
}

func peakOf(m *monitor, task model.TaskID, attempt int) units.Bytes {
	peak, _ := m.sighting(task, attempt)
	return peak
}
