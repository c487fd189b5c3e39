package runner

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"carma/containers/containerstest"
	"carma/estimator"
	"carma/estimator/probe"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/admission"
	"carma/runner/api"
	"carma/runner/gpu"
)

// sized is an estimator whose estimate for a network, in GiB, equals the batch size. For other
// tasks it uses the catalogue.
type sized struct{ *estimator.Catalogue }

func (s sized) Estimate(q estimator.Query) (estimator.Estimate, error) {
	if q.Network == nil {
		return s.Catalogue.Estimate(q)
	}
	m := units.Bytes(q.Network.Train.Batch) * units.GiB
	return estimator.Estimate{Memory: m, Point: m, Method: "sized", Detail: "by its network"}, nil
}

func withProbes(g *rig) {
	g.estimator = sized{g.estimator.(*estimator.Catalogue)}
	g.opt.Probing.When = admission.ProbeAsked
}

// mark returns the value of the variable that only a probe's container has.
func mark(p *containerstest.Process) string {
	for _, kv := range p.Spec.Env {
		if v, ok := strings.CutPrefix(kv, "CARMA_PROBE="); ok {
			return v
		}
	}
	return ""
}

// tell prints the output of the probe's Python side about a network with a batch size.
func tell(p *containerstest.Process, batch int) {
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	fmt.Fprintf(w, `{"kind":"result","pid":7,"config":{"schema":1,"name":"Net","family":"mlp","train":{"batch":%d},"inputs":[{"shape":[3]}],`+
		`"layers":[{"type":"linear","inputs":[-1],"out":[2],"params":[6,2]}]}}`, batch)
	_ = w.Close()
	fmt.Fprintf(p.Stderr, "%s 7 1 0 $ %s\n", mark(p), base64.StdEncoding.EncodeToString(z.Bytes()))
}

// trains returns a program that can be probed, and runs until it is stopped.
func trains(batch int) containerstest.Script {
	return func(ctx context.Context, p *containerstest.Process) int {
		if mark(p) == "" {
			return untilStopped(ctx, p)
		}
		tell(p, batch)
		<-p.Killed
		return 137
	}
}

func (g *rig) probesLeft() int {
	g.t.Helper()
	n := 0
	all, err := g.engine.List(g.ctx(), nil)
	if err != nil {
		g.t.Fatal(err)
	}
	for _, c := range all {
		if c.Labels[probe.Label] != "" {
			n++
		}
	}
	return n
}

// TestProbe: the estimate of the network that a probe finds is allocated, and no container
// or file is left.
func TestProbe(t *testing.T) {
	g := newRig(t, withProbes)
	g.script("train", trains(6))
	ref := g.run(api.Submit{Image: "train", Probe: true})
	task := g.running(ref)
	if task.Need != int64(6*units.GiB) || task.Estimate.Method != "sized" || task.Estimate.Detail != "by its network" {
		t.Errorf("booked %d, estimate %+v", task.Need, task.Estimate)
	}
	if n := g.probesLeft(); n != 0 {
		t.Errorf("%d probes left", n)
	}
	g.restart() // the sentence is kept
	if task, err := g.api.Task(g.ctx(), ref); err != nil || task.Estimate.Detail != "by its network" {
		t.Errorf("after a restart: %+v, %v", task.Estimate, err)
	}
}

// TestProbeFindsNothing: the estimate without a probe is used, with the reason.
func TestProbeFindsNothing(t *testing.T) {
	g := newRig(t, withProbes)
	g.script("train", func(ctx context.Context, p *containerstest.Process) int {
		if mark(p) != "" {
			return 3
		}
		return untilStopped(ctx, p)
	})
	task := g.running(g.run(api.Submit{Image: "train", Probe: true, EstModel: "resnet50", BatchSize: 64}))
	if !strings.HasPrefix(task.Estimate.Detail, "the probe found nothing (the image runs no Python program") || task.Estimate.Method != estimator.Measured {
		t.Errorf("estimate %+v", task.Estimate)
	}
	task = g.running(g.run(api.Submit{Image: "train", Probe: true}))
	if !task.Estimate.WholeGPU {
		t.Errorf("estimate of the unknown %+v", task.Estimate)
	}
}

// TestProbeKilled: a daemon that dies while it probes leaves a container. The
// next daemon probes again, and queues the task once.
func TestProbeKilled(t *testing.T) {
	g := newRig(t, withProbes)
	hold := make(chan struct{})
	var probes atomic.Int32
	g.script("train", func(ctx context.Context, p *containerstest.Process) int {
		if mark(p) == "" {
			return untilStopped(ctx, p)
		}
		if probes.Add(1) == 1 {
			<-p.Killed
			return 137
		}
		<-hold
		tell(p, 6)
		<-p.Killed
		return 137
	})
	ref := g.run(api.Submit{Image: "train", Probe: true})
	g.eventually("a probe runs", func() bool { return probes.Load() == 1 })
	// As after kill -9: the container still exists, but its daemon has ended.
	g.engine.FailNext(containerstest.OpRemove, errors.New("the daemon was killed"))
	g.stop()
	if n := g.probesLeft(); n != 1 {
		t.Fatalf("%d probes left by the daemon", n)
	}
	g.start()
	g.eventually("the second probe runs", func() bool { return probes.Load() == 2 })
	why, err := g.api.Why(g.ctx(), ref)
	if err != nil || !strings.Contains(why.Summary, "first steps run on the CPU") {
		t.Errorf("why: %q, %v", why.Summary, err)
	}
	close(hold)
	if task := g.running(ref); task.Need != int64(6*units.GiB) || len(task.Attempts) != 1 {
		t.Errorf("need %d, attempts %+v", task.Need, task.Attempts)
	}
	if n := g.probesLeft(); n != 0 {
		t.Errorf("%d probes left", n)
	}
}

// TestProbeCancelled: a task that is stopped while it is probed ends at once,
// with its probe. Then the next task is probed.
func TestProbeCancelled(t *testing.T) {
	g := newRig(t, withProbes)
	started := make(chan struct{}, 1)
	g.script("hangs", func(_ context.Context, p *containerstest.Process) int {
		started <- struct{}{}
		<-p.Killed
		return 137
	})
	g.script("train", trains(3))
	first := g.run(api.Submit{Image: "hangs", Probe: true})
	<-started
	second := g.run(api.Submit{Image: "train", Probe: true})
	g.eventually("the second waits for its turn", func() bool {
		task, err := g.api.Task(g.ctx(), second)
		return err == nil && task.Phase == "estimating" && strings.Contains(task.Waits, "waits until another task's is done")
	})
	if _, err := g.api.Stop(g.ctx(), first, api.StopRequest{}); err != nil {
		t.Fatal(err)
	}
	if task := g.finished(first); task.Phase != "cancelled" || len(task.Attempts) != 0 {
		t.Errorf("the first is %s after %d attempts", task.Phase, len(task.Attempts))
	}
	g.running(second)
	g.eventually("no probe is left", func() bool { return g.probesLeft() == 0 })
}

// TestProbeNotNeeded: a task with declared memory is not probed. A daemon may
// be set to probe nothing, or all unknown tasks.
func TestProbeNotNeeded(t *testing.T) {
	g := newRig(t, withProbes)
	probes, _ := g.probed()
	refused := func(s api.Submit, why string) {
		t.Helper()
		if _, err := g.api.Submit(g.ctx(), s); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%+v: %v, want %q", s, err, why)
		}
	}
	refused(api.Submit{Image: "train", Probe: true, Mem: int64(units.GiB)}, "--probe: mem says")
	g.opt.Probing.When = admission.ProbeNever
	g.restart()
	refused(api.Submit{Image: "train", Probe: true}, "does not probe")
	g.opt.Probing.When = admission.ProbeUnknown
	g.restart()
	g.finished(g.run(api.Submit{Image: "train", Command: []string{"unknown"}}))
	g.finished(g.run(api.Submit{Image: "train", Command: []string{"known"}, Mem: int64(units.GiB)}))
	if n := probes.Load(); n != 1 {
		t.Errorf("%d probes, want that of the unknown", n)
	}
}

// probed adds an image that counts its probes. Its programs end at once, or when hold is
// cleared.
func (g *rig) probed() (probes *atomic.Int32, hold *atomic.Bool) {
	probes, hold = new(atomic.Int32), new(atomic.Bool)
	g.script("train", func(ctx context.Context, p *containerstest.Process) int {
		if mark(p) == "" {
			for hold.Load() && ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
			return 0
		}
		probes.Add(1)
		tell(p, 2)
		<-p.Killed
		return 137
	})
	return probes, hold
}

// TestProbeNotAgain: the peak of earlier runs is better than a probe.
func TestProbeNotAgain(t *testing.T) {
	g := newRig(t, withProbes)
	g.opt.Mapper.Learn = true
	g.restart()
	probes, hold := g.probed()
	hold.Store(true)
	ref := g.run(api.Submit{Image: "train", Probe: true})
	task := g.running(ref)
	g.cards.set(gpu.Sample{UUID: task.Attempts[0].GPUs[0].UUID, Used: 3 * units.GiB, Processes: []gpu.Process{{Task: model.TaskID(task.ID), Attempt: 1, Used: 3 * units.GiB}}})
	g.eventually("it is seen", func() bool {
		gpus, err := g.api.GPUs(g.ctx())
		return err == nil && slices.ContainsFunc(gpus, func(g api.GPU) bool { return g.Used > 0 })
	})
	hold.Store(false)
	g.finished(ref)
	task = g.finished(g.run(api.Submit{Image: "train", Probe: true}))
	if task.Estimate.Method != string(model.FromHistory) || task.Estimate.Memory != int64(3*units.GiB+128*units.MiB) || probes.Load() != 1 {
		t.Errorf("%d probes, estimate %+v", probes.Load(), task.Estimate)
	}
}

// loose is an estimator that returns 90 GiB for every task, as an estimate from a few figures.
type loose struct{ *estimator.Catalogue }

func (loose) Estimate(estimator.Query) (estimator.Estimate, error) {
	return estimator.Estimate{Memory: 99 * units.GiB, Point: 90 * units.GiB, Method: "carma", Detail: "90 GiB", Loose: true}, nil
}

// TestLooseEstimate: a task is not refused for an estimate from a few figures.
func TestLooseEstimate(t *testing.T) {
	g := newRig(t, func(g *rig) { g.estimator = loose{g.estimator.(*estimator.Catalogue)} })
	g.script("train", printing(0))
	task := g.finished(g.run(api.Submit{Image: "train", Params: 1e9, Family: "cnn", BatchSize: 8}))
	if !task.Estimate.WholeGPU || !strings.Contains(task.Estimate.Detail, "90 GiB; more than a GPU here has") {
		t.Errorf("estimate %+v", task.Estimate)
	}
}
