//go:build e2e && gpu

package test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"carma/containers"
	"carma/estimator"
	"carma/mapper"
	"carma/runner"
	"carma/runner/api"
	"carma/runner/clock"
	"carma/runner/gpu"
	"carma/runner/journal"
	"carma/runner/mps"
	apiserver "carma/runner/server"
	"carma/runner/sharing"
	"carma/runner/tasklog"

	"github.com/rs/zerolog"
)

// idle is a source of the toolkit's GPUs, on which no memory is ever used.
type idle struct{}

func (idle) Name() string { return "idle" }
func (idle) Close() error { return nil }

func (idle) GPUs(context.Context) (list []gpu.Device, err error) {
	for i := range 4 {
		list = append(list, gpu.Device{UUID: uuid(i), Index: i, Model: "none", Capacity: gpuMemory})
	}
	return list, nil
}

func (idle) Sample(context.Context) (list []gpu.Sample, err error) {
	for i := range 4 {
		list = append(list, gpu.Sample{UUID: uuid(i)})
	}
	return list, nil
}

// TestGPUsTasks: the daemon chooses how to attach GPUs. Its tasks see the GPUs
// that it reports. Two share a GPU within their grants, as clients of one MPS
// control daemon. One that runs out of GPU memory is relaunched.
func TestGPUsTasks(t *testing.T) {
	t.Run("containerd", func(t *testing.T) { runGPUTasks(t, gpuContainerd(t), "cdi: CDI files name every GPU", 1234) })
	t.Run("docker", func(t *testing.T) { runGPUTasks(t, gpuDocker(t), "runtime: the nvidia runtime is there", 0) })
}

// standin builds a program that simulates the MPS control daemon.
func standin(t *testing.T) *mps.Groups {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "m")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // so that the image's user can enter it
		t.Fatal(err)
	}
	bin := filepath.Join(dir, mps.Binary)
	if out, err := exec.Command("go", "build", "-o", bin, "../runner/mps/standin/command").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// The server's program must be beside it; the stand-in needs none.
	if err := os.WriteFile(filepath.Join(dir, "nvidia-cuda-mps-server"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	groups := &mps.Groups{Dir: dir + "/g", Binary: bin}
	t.Cleanup(func() {
		list, err := groups.List()
		if err != nil {
			t.Error(err)
		}
		for _, g := range list {
			if err := groups.Stop(context.Background(), g, true); err != nil {
				t.Error(err)
			}
		}
		_ = os.RemoveAll(dir)
	})
	return groups
}

// gpuDaemon runs a daemon in this process, on the toolkit's GPUs.
func gpuDaemon(t *testing.T, driver containers.Driver, source gpu.Source, change func(*runner.Options)) *server {
	t.Helper()
	s := newServer(t) // only for its folders and commands
	j, err := journal.Open(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	opt := runner.Options{Version: "test", DataDir: s.dir, Account: os.Geteuid(), Mapper: mapper.DefaultsOf("first-fit"), SampleEvery: 50e6, Pull: "never"}
	opt.Mapper.WarmUp, opt.Mapper.Backoff, opt.Mapper.IdleFirst = 0, 10e6, false
	change(&opt)
	r, err := runner.New(t.Context(), opt, runner.Deps{
		Journal: j, Logs: tasklog.Open(filepath.Join(s.dir, "logs"), 0), Driver: driver, GPUs: source,
		Estimator: estimator.NewCatalogue(nil), Clock: clock.New(1), Log: zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.WarnLevel),
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := apiserver.Listen(s.socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.RunAndServe(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// runGPUTasks runs tasks of an image whose user is uid.
func runGPUTasks(t *testing.T, driver containers.Driver, attached string, uid int) {
	groups := standin(t)
	s := gpuDaemon(t, driver, idle{}, func(opt *runner.Options) { opt.MPS = &sharing.MPS{Groups: groups, LimitMemory: true} })
	if out := s.carma("doctor").out; !strings.Contains(out, "GPU attachment") || !strings.Contains(out, attached) || !strings.Contains(out, "each user's tasks by MPS") {
		t.Errorf("carma doctor:\n%s", out)
	}
	look := []string{tool, "devices", "env:NVIDIA_VISIBLE_DEVICES", "env:CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"}
	pid := func(gpus ...int) string { // in this file a group's control daemon writes its number
		var ids []string
		for _, g := range gpus {
			ids = append(ids, uuid(g))
		}
		return "read:" + groups.Of(uid, uid, ids).Pipe + "/" + mps.Binary + ".pid"
	}
	submit := func(name, mem, gpus, pid string) string {
		return s.submit(append([]string{"--name", name, "--mem", mem, "--gpus", gpus}, append(look, pid, "block:0")...)...)
	}
	a, b, both := submit("a", "10G", "1", pid(0)), submit("b", "10G", "1", pid(0)), submit("both", "30G", "2", pid(1, 2))
	for ref, limit := range map[string]string{a: "0=10240M", b: "0=10240M", both: ""} {
		task := s.running(ref)
		var nodes, ids []string
		for _, g := range task.Attempts[0].GPUs {
			nodes = append(nodes, "nvidia"+string(rune('0'+g.Index)))
			ids = append(ids, g.UUID)
		}
		want := []string{strings.Join(nodes, " ") + " nvidiactl", "NVIDIA_VISIBLE_DEVICES=" + strings.Join(ids, ","), "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=" + limit, strconv.Itoa(groups.Of(uid, uid, ids).PID())}
		eventually(t, "its output", func() bool { out, _ := s.lines(ref); return len(out) >= 4 })
		out, _ := s.lines(ref)
		// In CDI mode NVIDIA's runtime sets the variable to void.
		if len(out) > 1 && driver.Name() == "docker" && out[1] == "NVIDIA_VISIBLE_DEVICES=void" {
			want[1] = out[1]
		}
		if !slices.Equal(out, want) {
			t.Errorf("task %s sees %q, want %q", ref, out, want)
		}
	}
	if x, y := s.inspect(a).Attempts[0].GPUs[0].UUID, s.inspect(b).Attempts[0].GPUs[0].UUID; x != y {
		t.Errorf("two tasks of 10 GiB are on %s and %s, want one GPU", x, y)
	}
	oom := s.submit("--mem", "2G", tool, "err:torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", "exit:1")
	task := s.until(oom, "its relaunch", func(t *api.Task) bool { return len(t.Attempts) > 1 })
	if first := task.Attempts[0]; first.Outcome != "gpu-oom" {
		t.Errorf("the first attempt ended as %+v, want a GPU OOM", first)
	}
	s.ok("stop", a, b, both)
	for _, ref := range []string{a, b, both, oom} {
		s.finished(ref)
	}
}
