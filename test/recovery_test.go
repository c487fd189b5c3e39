//go:build e2e

package test

import (
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"carma/internal/units"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"

	"carma/runner/api"
)

// TestRecovery checks that a task that requested too little memory runs out of memory on a
// shared GPU, gets more, and succeeds.
func TestRecovery(t *testing.T) {
	t.Parallel()
	s := newServer(t, "--speed", "60")
	s.start()
	// One large task on every GPU leaves 4 GiB of it free.
	var crowd []string
	for range 4 {
		crowd = append(crowd, s.submit("--mem", "36G", image, "resnet50-imagenet-bs64", "--peak", "36G", "--time", "2h", "--smact", "0.1"))
	}
	for _, ref := range crowd {
		s.holds(ref, 36*units.GiB)
	}
	small := s.submit("--name", "small", "--mem", "2G", image, "resnet50-imagenet-bs64", "--peak", "10G", "--time", "20m", "--smact", "0.1")
	waiting := s.until(small, "its relaunch", func(t *api.Task) bool { return t.Phase == "recovering" && t.Waits != "" })
	if first := waiting.Attempts[0]; first.Outcome != "gpu-oom" || first.ExitCode != 1 || first.Blameless {
		t.Errorf("the first attempt ended as %+v, want a GPU OOM of its own fault", first)
	}
	if out := s.ok("why", small); !strings.Contains(out, "recovery queue") || !strings.Contains(out, "gpu-oom") {
		t.Errorf("carma why:\n%s", out)
	}
	_, errs := s.lines(small)
	if !slices.ContainsFunc(errs, func(l string) bool {
		return strings.HasPrefix(l, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate")
	}) {
		t.Errorf("PyTorch's message is not in the output: %q", errs)
	}
	s.speed(6000)
	s.succeeded(append(crowd, small)...)
	task := s.inspect(small)
	if len(task.Attempts) < 2 {
		t.Fatalf("it succeeded in the first attempt: %+v", task)
	}
	for i, at := range task.Attempts[1:] {
		if at.Grant <= task.Attempts[i].Grant {
			t.Errorf("attempt %d got %s after %s", at.N, units.Bytes(at.Grant), units.Bytes(task.Attempts[i].Grant))
		}
	}
	last := task.Attempts[len(task.Attempts)-1]
	if last.Outcome != "ok" || last.Peak != int64(10*units.GiB) {
		t.Errorf("the last attempt ended as %+v, want success with a peak of 10 GiB", last)
	}
	if v := s.verified(); v.OOMs != len(task.Attempts)-1 || v.Relaunches != v.OOMs || v.Succeeded != 5 {
		t.Errorf("the journal has %+v, want %d OOMs, all recovered", v, len(task.Attempts)-1)
	}
	s.checkContainers()
	s.checkOutput(5)
	// The output of each attempt is kept, and the containers are gone.
	for _, at := range task.Attempts {
		if out := s.ok("logs", "--attempt", strconv.Itoa(at.N), small); !strings.HasPrefix(out, "resnet50 on imagenet") {
			t.Errorf("the output of attempt %d: %q", at.N, out)
		}
	}
}

// TestProgramBug: a program's own failure does not count as an OOM.
func TestProgramBug(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start()
	bug := s.submit("--mem", "8G", image, "resnet50-imagenet-bs64", "--time", "10m", "--fail-at", "40%")
	typo := s.submit("--mem", "1G", image, "resnet51-imagenet-bs64")
	twice := s.submit("--mem", "1G", "--retries", "1", tool, "err:no luck", "exit:7")
	missing := s.submit("--mem", "1G", "--entrypoint", "/no/such/program", tool)
	late := s.submit("--mem", "1G", "--time", "5m", image, "resnet50-imagenet-bs64", "--time", "1h")
	for _, c := range []struct {
		ref      string
		attempts int
		outcome  string
		code     int
		words    string
	}{
		{bug, 1, "program", 1, "ValueError"},
		{typo, 1, "program", 2, "exit code 2"},
		{twice, 2, "program", 7, "exit code 7"},
		{missing, 1, "cannot-start", 127, "/no/such/program"},
		{late, 1, "stopped", 143, "5m"},
	} {
		task := s.finished(c.ref)
		if task.Phase != "failed" || len(task.Attempts) != c.attempts || !strings.Contains(task.Reason, c.words) {
			t.Errorf("task %s has %s after %d attempts (%s), want failed after %d (%s)",
				c.ref, task.Phase, len(task.Attempts), task.Reason, c.attempts, c.words)
		}
		for _, at := range task.Attempts {
			if at.Outcome != c.outcome || at.ExitCode != c.code {
				t.Errorf("task %s attempt %d: %s with %d, want %s with %d", c.ref, at.N, at.Outcome, at.ExitCode, c.outcome, c.code)
			}
		}
		r := s.carma("wait", c.ref)
		if r.code != c.code || strings.TrimSpace(r.out) != strconv.Itoa(c.code) {
			t.Errorf("want %d: %v", c.code, r)
		}
	}
	s.engine.gone(t, s.instance())
	if _, errs := s.lines(bug); !slices.ContainsFunc(errs, func(l string) bool { return strings.HasPrefix(l, "ValueError: ") }) {
		t.Errorf("the traceback is not in the output: %q", errs)
	}
	if v := s.verified(); v.OOMs != 0 || v.Failed != 5 || v.Launches != 6 {
		t.Errorf("the journal has %+v, want 5 failures in 6 launches and no OOM", v)
	}
}

// TestForeign: GPU memory that other processes use is not allocated.
func TestForeign(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start()
	var strangers []string
	for _, gpu := range []string{"0", "1", "2", "3"} {
		strangers = append(strangers, s.stranger(gpu))
	}
	eventually(t, "each GPU is taken", func() bool {
		var gpus []api.GPU
		s.decode(&gpus, "gpus", "--json")
		return !slices.ContainsFunc(gpus, func(g api.GPU) bool { return g.Foreign != int64(30*units.GiB) })
	})
	fits := s.submit("--mem", "8G", image, "resnet50-imagenet-bs64", "--time", "1h")
	s.running(fits)
	ref := s.submit("--mem", "20G", tool, "out:at last")
	s.until(ref, "the reason", func(t *api.Task) bool {
		return t.Phase == "queued" && strings.Contains(t.Waits, "memory")
	})
	if out := s.ok("why", ref); strings.Count(out, " 30.0 of ") < 3 || !strings.Contains(out, " 38.0 of ") {
		t.Errorf("carma why:\n%s", out)
	}
	if _, err := s.engine.cli.ContainerStop(t.Context(), strangers[2], client.ContainerStopOptions{}); err != nil {
		t.Fatal(err)
	}
	task := s.succeeded(ref)[0]
	if gpu := task.Attempts[0].GPUs[0].Index; gpu != 2 {
		t.Errorf("it ran on GPU %d, which is still taken", gpu)
	}
	s.succeeded(fits)
	s.verified()
}

// stranger allocates 30 GiB of a GPU with docker run, outside of carma.
func (s *server) stranger(gpu string) string {
	s.t.Helper()
	cli := s.engine.cli
	made, err := cli.ContainerCreate(s.t.Context(), client.ContainerCreateOptions{
		Config: &container.Config{
			Image: image, Cmd: []string{"resnet50-imagenet-bs64", "--peak", "30G", "--hang"},
			Env: []string{"NVIDIA_VISIBLE_DEVICES=" + gpu},
		},
		HostConfig: &container.HostConfig{Mounts: []mount.Mount{
			{Type: mount.TypeBind, Source: filepath.Join(s.dir, "sim"), Target: "/run/carma-sim"},
		}},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		_, err := cli.ContainerRemove(context.Background(), made.ID, client.ContainerRemoveOptions{Force: true})
		if err != nil {
			s.t.Error(err)
		}
	})
	if _, err := cli.ContainerStart(s.t.Context(), made.ID, client.ContainerStartOptions{}); err != nil {
		s.t.Fatal(err)
	}
	return made.ID
}
