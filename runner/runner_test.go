package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/gpu"
	"carma/runner/label"
	"carma/runner/verify"
)

const pytorchOOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 39.56 GiB of which 1.00 GiB is free. " +
	"Including non-PyTorch memory, this process has 9.00 GiB memory in use."

func TestTaskRunsToItsEnd(t *testing.T) {
	g := newRig(t)
	g.engine.AddImage("train", containerstest.Image{Run: func(_ context.Context, p *containerstest.Process) int {
		p.Out("epoch 1")
		p.Err("warning")
		return 0
	}})
	ref := g.run(api.Submit{Image: "train", EstModel: "resnet50", BatchSize: 64, Name: "first"})
	task := g.finished(ref)
	if task.Phase != "succeeded" || task.ExitCode == nil || *task.ExitCode != 0 || task.Estimate.Method != "catalogue" {
		t.Errorf("task is %+v", task)
	}
	if got := g.output("first"); !slices.Contains(got, "stdout:epoch 1") || !slices.Contains(got, "stderr:warning") || len(got) != 2 {
		t.Errorf("output is %q", got)
	}
	// The container is removed once its end is durable, and the output is kept.
	g.eventually("the container is removed", func() bool { return len(g.containers()) == 0 })
	if got := g.output(ref); len(got) != 2 {
		t.Errorf("output after the container has gone is %q", got)
	}
}

func (g *rig) eventually(what string, ok func() bool) {
	g.t.Helper()
	for deadline := time.Now().Add(stepTimeout); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			g.t.Fatalf("never: %s", what)
		}
	}
}

func (g *rig) containers() []containers.Container {
	all, err := g.engine.List(context.Background(), nil)
	if err != nil {
		g.t.Fatal(err)
	}
	return all
}

func TestGPUOOMIsRelaunchedWithMore(t *testing.T) {
	g := newRig(t)
	var runs atomic.Int32
	g.script("hungry", func(ctx context.Context, p *containerstest.Process) int {
		if runs.Add(1) == 1 {
			return printing(1, "Traceback (most recent call last):", pytorchOOM)(ctx, p)
		}
		return 0
	})
	task := g.finished(g.run(api.Submit{Image: "hungry", Mem: int64(4 * units.GiB)}))
	if task.Phase != "succeeded" || len(task.Attempts) != 2 || task.Attempts[0].Outcome != "gpu-oom" {
		t.Fatalf("task is %s with %+v", task.Phase, task.Attempts)
	}
	// 9 GiB in use and 2 refused, a quarter more and a GiB.
	if want := int64((11 * units.GiB).Scale(1.25) + units.GiB); task.Attempts[1].Grant != want {
		t.Errorf("second grant is %d, want %d", task.Attempts[1].Grant, want)
	}
}

// TestProgramFaultIsNotRetried checks that an ordinary failure does not count as an OOM, and
// that the task does not run again.
func TestProgramFaultIsNotRetried(t *testing.T) {
	g := newRig(t)
	g.script("bug", printing(1, "Traceback (most recent call last):", "ValueError: shapes do not match"))
	task := g.finished(g.run(api.Submit{Image: "bug", Mem: int64(units.GiB)}))
	if task.Phase != "failed" || len(task.Attempts) != 1 || *task.ExitCode != 1 {
		t.Errorf("task is %s with %+v", task.Phase, task.Attempts)
	}
	task = g.finished(g.run(api.Submit{Image: "bug", Mem: int64(units.GiB), Retries: 2}))
	if task.Phase != "failed" || len(task.Attempts) != 3 {
		t.Errorf("with two retries: %s after %d attempts", task.Phase, len(task.Attempts))
	}
}

func TestStop(t *testing.T) {
	g := newRig(t)
	g.script("loop", untilStopped)
	ref := g.run(api.Submit{Image: "loop", Mem: int64(units.GiB)})
	g.running(ref)
	if _, err := g.api.Stop(g.ctx(), ref, api.StopRequest{}); err != nil {
		t.Fatal(err)
	}
	if task := g.finished(ref); task.Phase != "cancelled" || !strings.HasPrefix(task.Reason, "stopped by ") {
		t.Errorf("task is %s (%s)", task.Phase, task.Reason)
	}
	if _, err := g.api.Stop(g.ctx(), ref, api.StopRequest{}); err != nil {
		t.Errorf("a second stop: %v", err)
	}
}

func TestRemoveOnlyFinished(t *testing.T) {
	g := newRig(t)
	g.script("loop", untilStopped)
	g.script("ok", printing(0, "done"))
	ref := g.run(api.Submit{Image: "loop", Mem: int64(units.GiB)})
	var status *api.StatusError
	if err := g.api.Remove(g.ctx(), ref); !errors.As(err, &status) || status.Status != 409 {
		t.Errorf("removing a running task: %v", err)
	}
	ok := g.run(api.Submit{Image: "ok", Mem: int64(units.GiB)})
	g.finished(ok)
	if err := g.api.Remove(g.ctx(), ok); err != nil {
		t.Fatal(err)
	}
	if _, err := g.api.Task(g.ctx(), ok); !errors.As(err, &status) || status.Status != 404 {
		t.Errorf("after rm: %v", err)
	}
}

// TestRestartKeepsEverything checks that a daemon that stops leaves its containers running, and
// that the next one adopts them.
func TestRestartKeepsEverything(t *testing.T) {
	g := newRig(t)
	var starts atomic.Int32
	release := make(chan struct{})
	g.script("long", func(ctx context.Context, p *containerstest.Process) int {
		starts.Add(1)
		p.Out("before")
		select {
		case <-release:
		case <-p.Killed:
			return 137
		}
		p.Out("after")
		return 0
	})
	running := g.run(api.Submit{Image: "long", Mem: int64(30 * units.GiB)})
	second := g.run(api.Submit{Image: "long", Mem: int64(30 * units.GiB)})
	queued := g.run(api.Submit{Image: "long", Mem: int64(30 * units.GiB)})
	g.running(running)
	g.running(second)
	before, err := g.api.Tasks(g.ctx(), api.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	g.restart()
	after, err := g.api.Tasks(g.ctx(), api.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, list := range [][]api.Task{before, after} {
		for i := range list {
			list[i].Progress = nil // progress changes with time
		}
	}
	was, err := json.Marshal(before)
	is, err2 := json.Marshal(after)
	if !bytes.Equal(was, is) || err != nil || err2 != nil {
		t.Errorf("the tasks differ after a restart:\n%s\n%s, %v, %v", was, is, err, err2)
	}
	if n := starts.Load(); n != 2 {
		t.Errorf("%d starts after the restart, want 2", n)
	}
	close(release)
	for _, ref := range []string{running, second, queued} {
		if task := g.finished(ref); task.Phase != "succeeded" || len(task.Attempts) != 1 {
			t.Errorf("task %s is %s after %d attempts", ref, task.Phase, len(task.Attempts))
		}
		if got := g.output(ref); !slices.Equal(got, []string{"stdout:before", "stdout:after"}) {
			t.Errorf("output of %s is %q", ref, got)
		}
	}
	if n := starts.Load(); n != 3 {
		t.Errorf("%d starts in the end, want 3", n)
	}
}

// TestEndWhileTheDaemonIsDown checks that the next daemon detects a task that ended while no
// daemon ran.
func TestEndWhileTheDaemonIsDown(t *testing.T) {
	g := newRig(t)
	release := make(chan struct{})
	g.script("long", func(context.Context, *containerstest.Process) int { <-release; return 7 })
	ref := g.run(api.Submit{Image: "long", Mem: int64(units.GiB)})
	g.running(ref)
	g.stop()
	close(release)
	g.eventually("the container ends", func() bool { return g.containers()[0].State == containers.StateExited })
	g.start()
	if task := g.finished(ref); task.Phase != "failed" || *task.ExitCode != 7 {
		t.Errorf("task is %s with %+v", task.Phase, task.Attempts)
	}
}

// TestLaunchIsCarriedOutExactlyOnce: if a daemon is killed between deciding a launch and making
// its container, the next one makes it. If it is killed after the start, before that was
// journaled, the next one does not make another.
func TestLaunchIsCarriedOutExactlyOnce(t *testing.T) {
	long(t)
	for _, op := range []containerstest.Op{containerstest.OpCreate, containerstest.OpStart} {
		t.Run(string(op), func(t *testing.T) {
			g := newRig(t)
			var starts atomic.Int32
			g.script("once", func(context.Context, *containerstest.Process) int { starts.Add(1); return 0 })
			g.engine.LoseNext(op) // it takes effect, the answer is lost
			ref := g.run(api.Submit{Image: "once", Mem: int64(units.GiB)})
			if task := g.finished(ref); task.Phase != "succeeded" || len(task.Attempts) != 1 || starts.Load() != 1 {
				t.Errorf("%s after %d attempts and %d starts", task.Phase, len(task.Attempts), starts.Load())
			}
		})
	}
}

func TestEngineDownTasksWaitAndResume(t *testing.T) {
	g := newRig(t)
	release := make(chan struct{})
	g.script("long", func(ctx context.Context, _ *containerstest.Process) int {
		select {
		case <-release:
		case <-ctx.Done(): // the test is over
		}
		return 0
	})
	running := g.run(api.Submit{Image: "long", Mem: int64(units.GiB)})
	g.running(running)
	g.engine.Down()
	g.eventually("the daemon notices", func() bool {
		info, err := g.api.Info(g.ctx())
		return err == nil && info.EngineDown != ""
	})
	sub, err := g.api.Submit(g.ctx(), api.Submit{Image: "long", Mem: int64(units.GiB)})
	if err != nil {
		t.Fatalf("submission while the engine is down: %v", err)
	}
	if len(sub.Warnings) == 0 {
		t.Error("no warning that the task waits for the engine")
	}
	waits := model.TaskID(sub.ID).String()
	g.until(waits, "waiting for the engine", func(t api.Task) bool { return strings.Contains(t.Waits, "engine") })
	close(release)
	g.engine.Up()
	for _, ref := range []string{running, waits} {
		if task := g.finished(ref); task.Phase != "succeeded" || len(task.Attempts) != 1 {
			t.Errorf("task %s is %s: %+v", ref, task.Phase, task.Attempts)
		}
	}
}

// If an engine ends, its containers end with it; the tasks are not at fault.
func TestContainerKilledWithTheEngine(t *testing.T) {
	g := newRig(t)
	var starts atomic.Int32
	g.script("long", func(ctx context.Context, p *containerstest.Process) int {
		if starts.Add(1) == 1 {
			<-p.Killed
		}
		return 0
	})
	ref := g.run(api.Submit{Image: "long", Mem: int64(units.GiB)})
	g.running(ref)
	id := g.containers()[0].ID
	g.engine.Down()
	g.eventually("the daemon notices", func() bool {
		info, err := g.api.Info(g.ctx())
		return err == nil && info.EngineDown != ""
	})
	g.engine.End(id, containers.Exit{Code: 137})
	g.engine.Up()
	task := g.finished(ref)
	if task.Phase != "succeeded" || len(task.Attempts) != 2 || task.Attempts[0].Outcome != "infrastructure" || !task.Attempts[0].Blameless {
		t.Errorf("task is %s: %+v", task.Phase, task.Attempts)
	}
}

func TestContainerThatVanished(t *testing.T) {
	g := newRig(t)
	var starts atomic.Int32
	g.script("long", func(ctx context.Context, p *containerstest.Process) int {
		if starts.Add(1) == 1 {
			<-p.Killed
		}
		return 0
	})
	ref := g.run(api.Submit{Image: "long", Mem: int64(units.GiB)})
	g.running(ref)
	g.stop()
	if err := g.engine.Remove(context.Background(), g.containers()[0].ID); err != nil {
		t.Fatal(err)
	}
	g.start()
	task := g.finished(ref)
	if task.Phase != "succeeded" || len(task.Attempts) != 2 || task.Attempts[0].Outcome != "infrastructure" {
		t.Errorf("task is %s: %+v", task.Phase, task.Attempts)
	}
}

func TestBadRequests(t *testing.T) {
	g := newRig(t)
	g.script("ok", printing(0))
	g.script("loop", untilStopped)
	g.run(api.Submit{Image: "loop", Mem: 1, Name: "taken"})
	cases := map[string]struct {
		s    api.Submit
		want []string
	}{
		"image":    {api.Submit{Image: "nothere"}, []string{"unknown image nothere"}},
		"model":    {api.Submit{Image: "ok", EstModel: "resnet5"}, []string{"resnet5", "resnet50"}},
		"gpus":     {api.Submit{Image: "ok", GPUs: 99}, []string{"--gpus", "99", "2"}},
		"mem":      {api.Submit{Image: "ok", Mem: int64(900 * units.GiB)}, []string{"--mem", "900.0 GiB", "39.5 GiB"}},
		"name":     {api.Submit{Image: "ok", Name: "a b"}, []string{"--name", "a b"}},
		"number":   {api.Submit{Image: "ok", Name: "17"}, []string{"--name 17"}},
		"taken":    {api.Submit{Image: "ok", Name: "taken"}, []string{"taken", "another name"}},
		"env":      {api.Submit{Image: "ok", Env: []string{"=x"}}, []string{"KEY=value"}},
		"mount":    {api.Submit{Image: "ok", Mounts: []api.Mount{{Source: "/no/such", Target: "/x"}}}, []string{"/no/such"}},
		"priority": {api.Submit{Image: "ok", Priority: "urgent"}, []string{"priority"}},
		"negative": {api.Submit{Image: "ok", Mem: -1}, []string{"mem"}},
		"no image": {api.Submit{}, []string{"image"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := g.api.Submit(g.ctx(), c.s)
			var status *api.StatusError
			if !errors.As(err, &status) || !status.Usage() {
				t.Fatalf("got %v, want a refusal", err)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not mention %q", err, w)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
		})
	}
	if all, err := g.api.Tasks(g.ctx(), api.ListOptions{All: true}); err != nil || len(all) != 1 {
		t.Errorf("%d tasks after refused requests: %v", len(all), err)
	}
}

func TestImageLabelsAreEnough(t *testing.T) {
	g := newRig(t)
	g.engine.AddImage("labelled", containerstest.Image{Labels: map[string]string{
		"carma.est-model": "resnet50", "carma.batch-size": "64", "carma.gpus": "2",
	}})
	task := g.finished(g.run(api.Submit{Image: "labelled"}))
	if task.GPUCount != 2 || task.Estimate.Method != "catalogue" || task.Phase != "succeeded" {
		t.Errorf("task is %+v", task)
	}
	g.engine.AddImage("mislabelled", containerstest.Image{Labels: map[string]string{"carma.est-model": "nonsense", "carma.gpus": "many"}})
	sub, err := g.api.Submit(g.ctx(), api.Submit{Image: "mislabelled"})
	if err != nil || len(sub.Warnings) != 2 {
		t.Errorf("a bad label: %v, warnings %q", err, sub.Warnings)
	}
}

func TestForeignMemoryIsReserved(t *testing.T) {
	g := newRig(t)
	for _, d := range g.cards.devices {
		g.cards.set(gpu.Sample{UUID: d.UUID, Used: 35 * units.GiB, Processes: []gpu.Process{{PID: 1, Used: 35 * units.GiB}}})
	}
	g.eventually("the monitor sees it", func() bool {
		gpus, err := g.api.GPUs(g.ctx())
		return err == nil && gpus[0].Foreign == int64(35*units.GiB) && gpus[1].Foreign == int64(35*units.GiB)
	})
	g.script("ok", printing(0))
	ref := g.run(api.Submit{Image: "ok", Mem: int64(10 * units.GiB)})
	why, err := g.api.Why(g.ctx(), ref)
	if err != nil || why.Position != 1 || len(why.GPUs) != 2 || why.GPUs[0].Rule != "memory" {
		t.Fatalf("why is %+v, %v", why, err)
	}
	if want := "GPU 0 memory 35.0 of 39.5 GiB reserved, needs 10.0"; why.Summary != want {
		t.Errorf("summary is %q, want %q", why.Summary, want)
	}
	for _, d := range g.cards.devices {
		g.cards.set(gpu.Sample{UUID: d.UUID})
	}
	g.finished(ref)
}

func TestVerifyAcceptsWhatHappened(t *testing.T) {
	g := newRig(t)
	g.script("mixed", func(ctx context.Context, p *containerstest.Process) int {
		if n, _ := strconv.Atoi(p.Spec.Labels[label.Task]); n%3 == 1 && p.Spec.Labels[label.Attempt] == "1" {
			return printing(1, pytorchOOM)(ctx, p)
		}
		return 0
	})
	var refs []string
	for range 20 {
		refs = append(refs, g.run(api.Submit{Image: "mixed", Command: []string{strconv.Itoa(len(refs))}, Mem: int64(4 * units.GiB)}))
	}
	for i, ref := range refs {
		if i == 10 {
			g.restart()
		}
		g.finished(ref)
	}
	g.stop()
	v, err := verify.Journal(g.dir, "test")
	if err != nil || len(v.Faults) > 0 {
		t.Fatalf("verify: %v, %q", err, v.Faults)
	}
	if v.Submitted != 20 || v.Succeeded != 20 || v.OOMs == 0 || v.Relaunches != v.OOMs || v.Compared == 0 || v.Unfinished != 0 {
		t.Errorf("verification is %+v", v)
	}
}

// TestReboot checks that the tasks are not at fault if a reboot ends daemon, engine and
// containers together.
func TestReboot(t *testing.T) {
	g := newRig(t)
	var starts atomic.Int32
	g.script("long", func(_ context.Context, p *containerstest.Process) int {
		if starts.Add(1) == 1 {
			<-p.Killed
		}
		return 0
	})
	ref := g.run(api.Submit{Image: "long", Mem: int64(units.GiB)})
	g.running(ref)
	g.stop()
	g.engine.End(g.containers()[0].ID, containers.Exit{Code: 143})
	g.start()
	task := g.finished(ref)
	if task.Phase != "succeeded" || len(task.Attempts) != 2 || task.Attempts[0].Outcome != "infrastructure" || !task.Attempts[0].Blameless {
		t.Errorf("task is %s: %+v", task.Phase, task.Attempts)
	}
}

// TestTimeLimitIsNotForTheDaemon checks that a task that ended within its time limit while no
// daemon ran does not count as exceeding it.
func TestTimeLimitIsNotForTheDaemon(t *testing.T) {
	long(t)
	const limit = 500 * time.Millisecond
	g := newRig(t)
	release := make(chan struct{})
	g.script("long", func(ctx context.Context, _ *containerstest.Process) int {
		select {
		case <-release:
		case <-ctx.Done(): // the test is over
		}
		return 0
	})
	ref := g.run(api.Submit{Image: "long", Mem: int64(units.GiB), TimeLimit: limit})
	started := g.running(ref).Started
	g.stop()
	close(release)
	g.eventually("the container ends", func() bool { return g.containers()[0].State == containers.StateExited })
	if time.Since(started) > limit {
		t.Skip("this machine is too slow for the limit")
	}
	g.eventually("the limit is over", func() bool { return time.Since(started) > 2*limit })
	g.start()
	if task := g.finished(ref); task.Phase != "succeeded" || task.Ended.Sub(task.Started) < limit {
		t.Errorf("task is %s (%s): %+v", task.Phase, task.Reason, task.Attempts)
	}
	// A task that is still running is stopped.
	g.script("loop", untilStopped)
	ref = g.run(api.Submit{Image: "loop", Mem: int64(units.GiB), TimeLimit: limit})
	if task := g.finished(ref); task.Phase != "failed" || !strings.Contains(task.Reason, "time limit") {
		t.Errorf("task is %s (%s)", task.Phase, task.Reason)
	}
}

// A program gets the batch size of its estimate: the request's, else the
// label's. A variable that the user sets wins.
func TestProgramIsToldTheBatchSize(t *testing.T) {
	g := newRig(t)
	told := containerstest.Image{Labels: map[string]string{"carma.est-model": "resnet50", "carma.batch-size": "32"}, Run: func(_ context.Context, p *containerstest.Process) int {
		for _, kv := range p.Spec.Env {
			if strings.HasPrefix(kv, "CARMA_BATCH_SIZE=") {
				p.Out("%s", kv)
			}
		}
		return 0
	}}
	g.engine.AddImage("labelled", told)
	told.Labels = nil
	g.engine.AddImage("plain", told)
	for i, c := range []struct {
		submit api.Submit
		want   []string
	}{
		{api.Submit{Image: "labelled"}, []string{"stdout:CARMA_BATCH_SIZE=32"}},
		{api.Submit{Image: "labelled", BatchSize: 64}, []string{"stdout:CARMA_BATCH_SIZE=64"}},
		{api.Submit{Image: "labelled", Env: []string{"CARMA_BATCH_SIZE=1"}}, []string{"stdout:CARMA_BATCH_SIZE=32", "stdout:CARMA_BATCH_SIZE=1"}},
		{api.Submit{Image: "plain", Mem: 1 << 30}, nil},
	} {
		ref := g.run(c.submit)
		g.finished(ref)
		if got := g.output(ref); !slices.Equal(got, c.want) {
			t.Errorf("%d: it was told %q, want %q", i, got, c.want)
		}
	}
}
