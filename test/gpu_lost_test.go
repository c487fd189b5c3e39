//go:build e2e && gpu

package test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"carma/containers"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner"
	"carma/runner/api"
	"carma/runner/gpu"
	"carma/runner/gpu/cgroup"
	"carma/runner/gpu/devices"
	"carma/runner/gpu/devices/devicestest"
)

// using is a source of the toolkit's GPUs. A chosen task has memory on all of them.
type using struct {
	idle
	task *atomic.Int64
}

func (u using) Sample(ctx context.Context) ([]gpu.Sample, error) {
	list, err := u.idle.Sample(ctx)
	if id := u.task.Load(); id != 0 {
		for i := range list {
			list[i].Used = units.GiB
			list[i].Processes = []gpu.Process{{PID: 1, Task: model.TaskID(id), Attempt: 1, Used: units.GiB}}
		}
	}
	return list, err
}

// deny takes the GPUs' devices from a running container, as systemctl daemon-reload
// does: its device rules are replaced, and nothing else changes.
func deny(t *testing.T, container string) {
	t.Helper()
	procs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range procs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		names, err := cgroup.Containers("/", pid)
		if err != nil || !slices.Contains(names, container) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, "cgroup"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
			switch _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); {
			case parts[1] == "devices":
				devicestest.DenyFirst(t, "/sys/fs/cgroup/devices"+parts[2], "1:3")
				return
			case parts[0] == "0" && err == nil:
				t.Cleanup(devicestest.DenySecond(t, "/sys/fs/cgroup"+parts[2]))
				return
			}
		}
	}
	t.Fatalf("container %s has no process with device rules", container)
}

// TestGPUsLost: the devices of running containers are denied. A task that has nothing on
// its GPU is started again and is not at fault. One that uses its GPU continues, and its
// failure is no fault of its program.
func TestGPUsLost(t *testing.T) {
	t.Run("containerd", func(t *testing.T) {
		d := gpuContainerd(t)
		runLost(t, d, func(name string) string { return name })
	})
	t.Run("docker", func(t *testing.T) {
		d := gpuDocker(t)
		runLost(t, d, func(name string) string {
			all, err := d.List(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range all {
				if c.Name == name {
					return c.ID
				}
			}
			t.Fatalf("no container %s", name)
			return ""
		})
	})
}

// runLost runs the tasks. id returns what control groups call a container.
func runLost(t *testing.T, driver containers.Driver, id func(name string) string) {
	var user atomic.Int64
	s := gpuDaemon(t, driver, using{task: &user}, func(opt *runner.Options) {
		opt.DeviceAccess = &devices.Checker{Program: carma}
		opt.AllowedMounts = []string{"/"}
	})
	const loss = "GPU 0 can no longer be opened in the container (device cgroup)"

	printed := func(ref string) {
		t.Helper()
		eventually(t, "its first line", func() bool { out, _ := s.lines(ref); return len(out) > 0 })
	}

	waits := s.submit("--name", "waits", "--mem", "1G", tool, "devices", "block:0")
	first := s.running(waits)
	printed(waits)
	deny(t, id(first.Attempts[0].Container))
	task := s.until(waits, "its second attempt", func(t *api.Task) bool { return len(t.Attempts) == 2 && t.Phase == "running" })
	if got := task.Attempts[0]; got.Outcome != "infrastructure" || !strings.HasPrefix(got.Message, loss) {
		t.Errorf("the first attempt: %+v", got)
	}
	if out := s.ok("why", waits); !strings.Contains(out, "it runs again because") || !strings.Contains(out, loss) {
		t.Errorf("carma why: %s", out)
	}
	s.ok("stop", waits)
	s.finished(waits)

	dir := t.TempDir()
	works := s.submit("--name", "works", "--mem", "1G", "--volume", dir+":/x", tool, "look:node:/dev/nvidiactl", "gate:/x/go", "read:/dev/nvidiactl", "exit:1")
	first = s.running(works)
	user.Store(first.ID)
	printed(works)
	deny(t, id(first.Attempts[0].Container))
	s.until(works, "its loss", func(t *api.Task) bool { return t.Attempts[0].Devices == loss })
	if out := s.ok("why", works); !strings.Contains(out, loss) || !strings.Contains(out, "without blame") {
		t.Errorf("carma why: %s", out)
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	user.Store(0)
	s.until(works, "its end", func(t *api.Task) bool { return t.Phase == "failed" })
	task = s.inspect(works)
	if got := task.Attempts; len(got) != 2 || got[0].Outcome != "infrastructure" || got[1].Outcome != "program" {
		t.Errorf("%+v", got)
	}
	// The first could not open it, the second could.
	if out := s.ok("logs", "--attempt", "1", works); out != "1:3\nrefused\n" {
		t.Errorf("the first attempt printed %q", out)
	}
	if out := s.ok("logs", "--attempt", "2", works); out != "1:3\n\n" {
		t.Errorf("the second attempt printed %q", out)
	}
}
