//go:build e2e && gpu

package test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"carma/estimator"
	"carma/mapper"
	"carma/runner"
	"carma/runner/api"
	"carma/runner/gpu"
	"carma/runner/journal"
	"carma/runner/tasklog"
)

// idle is a source of the toolkit's GPUs, on which nothing is ever used.
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

// TestGPUsTasks: the daemon chooses CDI, its tasks see the GPUs that it tells
// they are on, two share one, and one that runs out of GPU memory is relaunched.
func TestGPUsTasks(t *testing.T) {
	s := newServer(t) // for its folders and commands; the daemon is this process
	j, err := journal.Open(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	opt := runner.Options{Version: "test", DataDir: s.dir, Mapper: mapper.DefaultsOf("first-fit"), SampleEvery: 50e6, Pull: "never"}
	opt.Mapper.WarmUp, opt.Mapper.Backoff, opt.Mapper.IdleFirst = 0, 10e6, false
	r, err := runner.New(t.Context(), opt, runner.Deps{
		Journal: j, Logs: tasklog.Open(filepath.Join(s.dir, "logs"), 0), Driver: gpuContainerd(t), GPUs: idle{},
		Estimator: estimator.NewCatalogue(nil), Clock: runner.NewClock(1), Log: zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.WarnLevel),
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := runner.Listen(s.socket)
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
	if out := s.carma("doctor").out; !strings.Contains(out, "GPU attachment") || !strings.Contains(out, "cdi: CDI files name every GPU") {
		t.Errorf("carma doctor:\n%s", out)
	}
	look := []string{tool, "devices", "env:NVIDIA_VISIBLE_DEVICES"}
	a := s.submit(append([]string{"--name", "a", "--mem", "10G"}, append(look, "block:0")...)...)
	b := s.submit(append([]string{"--name", "b", "--mem", "10G"}, append(look, "block:0")...)...)
	both := s.submit(append([]string{"--name", "both", "--mem", "30G", "--gpus", "2"}, append(look, "block:0")...)...)
	for _, ref := range []string{a, b, both} {
		task := s.running(ref)
		var nodes, ids []string
		for _, g := range task.Attempts[0].GPUs {
			nodes = append(nodes, "nvidia"+string(rune('0'+g.Index)))
			ids = append(ids, g.UUID)
		}
		want := strings.Join(nodes, " ") + " nvidiactl|NVIDIA_VISIBLE_DEVICES=" + strings.Join(ids, ",")
		eventually(t, "its output", func() bool { out, _ := s.lines(ref); return len(out) >= 2 })
		if out, _ := s.lines(ref); strings.Join(out, "|") != want {
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
