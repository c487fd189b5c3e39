package runner

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/mps"
	"carma/runner/record"
	"carma/runner/sharing"
)

// withMPS configures a rig with MPS. A program simulates the control daemon.
func withMPS(t *testing.T) func(*rig) {
	dir, err := os.MkdirTemp("", "mps") // a short path, because it contains sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	bin := filepath.Join(dir, mps.Binary)
	if out, err := exec.Command("go", "build", "-o", bin, "./mps/standin/command").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	groups := &mps.Groups{Dir: filepath.Join(dir, "g"), Binary: bin}
	t.Cleanup(func() {
		list, err := groups.List()
		if err != nil {
			t.Error(err)
		}
		for _, g := range list {
			if err := groups.Stop(context.WithoutCancel(t.Context()), g, true); err != nil {
				t.Error(err)
			}
		}
	})
	return func(g *rig) { g.opt.MPS = &sharing.MPS{Groups: groups, Threads: 50, LimitMemory: true} }
}

func (g *rig) mps(gpus ...string) *mps.Group {
	return g.opt.MPS.Groups.Of(os.Getuid(), os.Getgid(), gpus)
}

// pipeOf returns the pipe folder of a client's container, or "" if it is not a client.
func pipeOf(p *containerstest.Process) (pipe string) {
	for _, kv := range p.Spec.Env { // the last one counts
		if v, ok := strings.CutPrefix(kv, "CUDA_MPS_PIPE_DIRECTORY="); ok {
			pipe = v
		}
	}
	return pipe
}

// TestMPSClient checks that a task is a client of the control daemon for its GPUs and is
// limited to its grant, for any environment that it sets. A task alone on its GPUs is not a
// client. One on several GPUs has no memory limit: a process that sees fewer of them would lose
// all limits.
func TestMPSClient(t *testing.T) {
	long(t)
	g := newRig(t, withMPS(t))
	specs := make(chan *containerstest.Process, 4)
	g.script("train", func(_ context.Context, p *containerstest.Process) int { specs <- p; return 0 })
	g.finished(g.run(api.Submit{Image: "train", GPUs: 2, Mem: int64(3 * units.GiB), Env: []string{"CUDA_MPS_PIPE_DIRECTORY=/elsewhere"}}))
	p, group := <-specs, g.mps("GPU-a", "GPU-b")
	if pipeOf(p) != group.Pipe {
		t.Errorf("pipe folder %q, want %q", pipeOf(p), group.Pipe)
	}
	if env := strings.Join(p.Spec.Env, " "); !strings.Contains(env, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50") || strings.Contains(env, "MEM_LIMIT") {
		t.Errorf("environment %q", env)
	}
	at := slices.IndexFunc(p.Spec.Mounts, func(m containers.Mount) bool { return m.Source == group.Pipe && m.Target == group.Pipe })
	if at < 0 || p.Spec.IPC == containers.IPCHost {
		t.Errorf("mounts %+v, IPC %q", p.Spec.Mounts, p.Spec.IPC)
	}
	if err := group.Ping(t.Context()); err != nil {
		t.Errorf("its control daemon: %v", err)
	}
	g.finished(g.run(api.Submit{Image: "train", Mem: int64(3 * units.GiB)}))
	if p := <-specs; !slices.Contains(p.Spec.Env, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=3072M") {
		t.Errorf("on one GPU its environment is %q", p.Spec.Env)
	}
	g.finished(g.run(api.Submit{Image: "train", Exclusive: true}))
	if p := <-specs; pipeOf(p) != "" {
		t.Errorf("alone, and a client of %s", pipeOf(p))
	}
}

// TestMPSFault: if a fault ends two tasks, neither is at fault until it fails alone. Both
// run again, not together, and the server is restarted.
func TestMPSFault(t *testing.T) {
	long(t)
	g := newRig(t, withMPS(t), byMemory, func(g *rig) { g.cards = newCards(1, 40*units.GiB) })
	group := g.mps("GPU-a")
	var together atomic.Int32
	fault := printing(1, "RuntimeError: CUDA error: an illegal memory access was encountered")
	run := func(second int) containerstest.Script {
		return func(ctx context.Context, p *containerstest.Process) int {
			if pipeOf(p) == "" {
				if second != 0 {
					return fault(ctx, p)
				}
				return 0
			}
			client := map[int]string{0: "41", 1: "42"}[second]
			if _, err := group.Ask(context.Background(), "standin_connect "+client+" GPU-a train"); err != nil {
				t.Error(err)
			}
			for together.Add(1); together.Load() < 2; time.Sleep(time.Millisecond) {
			}
			if second != 0 {
				_, _ = group.Ask(context.Background(), "standin_fault "+client)
			}
			for {
				if servers, err := group.Servers(context.Background()); err == nil && len(servers) == 1 && servers[0].Status == mps.Fault {
					break
				}
			}
			// It ends when the other task's end has been classified, or is about to be.
			time.AfterFunc(300*time.Millisecond, func() { _, _ = group.Ask(context.Background(), "standin_leave "+client) })
			return fault(ctx, p)
		}
	}
	g.script("victim", run(0))
	g.script("culprit", run(1))
	victim := g.run(api.Submit{Image: "victim", Mem: int64(4 * units.GiB)})
	culprit := g.run(api.Submit{Image: "culprit", Mem: int64(4 * units.GiB)})
	v, c := g.finished(victim), g.finished(culprit)
	if v.Phase != "succeeded" || len(v.Attempts) != 2 || v.Attempts[0].Outcome != "mps-fault" || !v.Attempts[0].Blameless {
		t.Errorf("the victim: %s, %+v", v.Phase, v.Attempts)
	}
	if c.Phase != "failed" || len(c.Attempts) != 2 || c.Attempts[0].Outcome != "mps-fault" || c.Attempts[1].Outcome != "program" {
		t.Errorf("the culprit: %s, %+v", c.Phase, c.Attempts)
	}
	g.eventually("the server is mended", func() bool {
		servers, err := group.Servers(context.Background())
		return err == nil && len(servers) == 0
	})
}

// TestMPSStop: a client that ignores the stop signal is disconnected before it
// is killed.
func TestMPSStop(t *testing.T) {
	long(t)
	g := newRig(t, withMPS(t), byMemory, func(g *rig) {
		g.opt.StopGrace = 100 * time.Millisecond
		g.opt.Owner = func(pid int) (model.TaskID, int, bool) { return 1, 1, pid == 51 }
	})
	group := g.mps("GPU-a")
	var killed atomic.Bool
	g.script("stubborn", func(_ context.Context, p *containerstest.Process) int {
		for _, client := range []string{"51", "52"} { // the second is another task's
			if _, err := group.Ask(context.Background(), "standin_connect "+client+" GPU-a train"); err != nil {
				t.Error(err)
			}
		}
		p.Out("ready")
		for {
			select {
			case <-p.Killed:
				killed.Store(true)
				return 137
			case <-time.After(10 * time.Millisecond):
			}
			servers, err := group.Servers(context.Background())
			if err == nil && len(servers) == 1 && len(servers[0].Clients) == 1 {
				if servers[0].Clients[0].PID != 52 {
					t.Error("the other's client was disconnected")
				}
				return 1 // its next CUDA call fails
			}
		}
	})
	ref := g.run(api.Submit{Image: "stubborn", Mem: int64(4 * units.GiB)})
	g.running(ref)
	g.eventually("it is ready", func() bool { return slices.Contains(g.output(ref), "stdout:ready") })
	if _, err := g.api.Stop(g.ctx(), ref, api.StopRequest{}); err != nil {
		t.Fatal(err)
	}
	if task := g.finished(ref); task.Phase != "cancelled" || killed.Load() {
		t.Errorf("%s, killed %v", task.Phase, killed.Load())
	}
}

// TestContainerUser: a user that an image names by a name has a number that only
// the image knows.
func TestContainerUser(t *testing.T) {
	for _, row := range []struct {
		rec      record.Record
		uid, gid int
		ok       bool
	}{
		{record.Record{UID: 1000, GID: 100, ImageUser: "5:6"}, 1000, 100, true},
		{record.Record{UID: 1000, GID: 100, ImageUser: "nobody"}, 1000, 100, true},
		{record.Record{ImageUser: "5:6"}, 5, 6, true},
		{record.Record{ImageUser: "5"}, 5, 0, true},
		{record.Record{ImageUser: "5:6", Submit: api.Submit{User: "7:8"}}, 7, 8, true},
		{record.Record{ImageUser: "root"}, 0, 0, true},
		{record.Record{}, 0, 0, true},
		{record.Record{ImageUser: "nobody"}, 0, 0, false},
		{record.Record{ImageUser: "-1:2"}, 0, 0, false},
	} {
		if uid, gid, ok := row.rec.ContainerUser(); uid != row.uid || gid != row.gid || ok != row.ok {
			t.Errorf("%+v: %d:%d, %v", row.rec, uid, gid, ok)
		}
	}
}
