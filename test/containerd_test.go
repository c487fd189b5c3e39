//go:build e2e && containerd

package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carma/internal/units"

	"carma/containers/containerd"
	"carma/containers/containerstest"
	engines "carma/containers/containerstest/engine"
	"carma/runner/api"
	"carma/runner/label"
)

// newContainerd starts a containerd for this test only.
func newContainerd(t *testing.T) *engines.Containerd {
	t.Helper()
	needRoot(t)
	root, err := os.MkdirTemp("/tmp", "cd")
	if err != nil {
		t.Fatal(err)
	}
	c, err := engines.NewContainerd(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("containerd's log ends with\n%s", c.Log())
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// simtaskArchive returns a tar file with the image of the simulated task.
func simtaskArchive(t *testing.T) string {
	t.Helper()
	bin := os.Getenv("TEST_SIMTASK")
	if bin == "" {
		var err error
		if bin, err = build("simtask", "carma/cmd/simtask"); err != nil {
			t.Fatal(err)
		}
	}
	program, err := os.ReadFile(bin)
	if err != nil {
		t.Fatal(err)
	}
	tar, err := containerstest.Archive(image, "/simtask", program, containerstest.ImageConfig{Entrypoint: []string{"/simtask"}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "simtask.tar")
	if err := os.WriteFile(path, tar, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// toolArchive returns a tar file with the image of the tests' tool.
func toolArchive(t *testing.T) string {
	t.Helper()
	program, err := os.ReadFile(filepath.Join(scratch, "tool"))
	if err != nil {
		t.Fatal(err)
	}
	tar, err := containerstest.Archive(tool, "/tool", program, containerstest.ImageConfig{Entrypoint: []string{"/tool"}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tool.tar")
	if err := os.WriteFile(path, tar, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestContainerd runs tasks on containerd, two on a GPU, of which one runs out of
// GPU memory and is relaunched. Meanwhile the daemon and containerd are killed.
// Nothing may be lost or run twice.
func TestContainerd(t *testing.T) {
	t.Parallel()
	c := newContainerd(t)
	on := []string{"--driver", "containerd", "--containerd-address", c.Address()}
	s := newServer(t, append(on, "--speed", "60", "--backoff", "1s")...)
	if out := s.ok(append([]string{"image", "import", simtaskArchive(t)}, on...)...); out != image+"\n" {
		t.Errorf("imported %q", out)
	}
	if out := s.ok(append([]string{"image", "ls"}, on...)...); !strings.Contains(out, image) {
		t.Errorf("carma image ls:\n%s", out)
	}
	s.start()
	if out := s.carma("doctor").out; !strings.Contains(out, "containerd 1.") && !strings.Contains(out, "containerd 2.") {
		t.Errorf("carma doctor:\n%s", out)
	}
	var crowd []string
	for range 4 { // leaves 4 GiB of each GPU
		crowd = append(crowd, s.submit("--mem", "36G", image, "resnet50-imagenet-bs64", "--peak", "36G", "--time", "2h", "--smact", "0.1"))
	}
	for _, ref := range crowd {
		s.holds(ref, 36*units.GiB)
	}
	small := s.submit("--mem", "2G", image, "resnet50-imagenet-bs64", "--peak", "10G", "--time", "20m", "--smact", "0.1")
	s.until(small, "its relaunch", func(t *api.Task) bool { return t.Phase == "recovering" && t.Waits != "" })

	s.kill()
	c.Kill()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	s.start()
	for _, ref := range crowd {
		s.running(ref)
	}
	c.Kill() // while the daemon runs
	eventually(t, "the outage", func() bool { return strings.Contains(s.log.String(), "does not answer") })
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	s.speed(6000)
	s.succeeded(append(crowd, small)...)
	for _, ref := range crowd {
		if task := s.inspect(ref); len(task.Attempts) != 1 {
			t.Errorf("task %s took %d attempts: %+v", ref, len(task.Attempts), task.Attempts)
		}
	}
	task := s.inspect(small)
	if first := task.Attempts[0]; first.Outcome != "gpu-oom" || first.Blameless {
		t.Errorf("the first attempt ended as %+v, want a GPU OOM of its own fault", first)
	}
	if v := s.verified(); v.OOMs != len(task.Attempts)-1 || v.Succeeded != 5 || v.Launches != 4+len(task.Attempts) {
		t.Errorf("the journal has %+v, want %d OOMs, all recovered", v, len(task.Attempts)-1)
	}
	for _, ref := range append(crowd, small) {
		out, _ := s.lines(ref)
		if len(out) < 3 || !strings.HasPrefix(out[0], "resnet50 on imagenet") || !strings.HasPrefix(out[len(out)-1], "trained ") {
			t.Errorf("task %s: %d lines of output: %q ... %q", ref, len(out), out[:min(1, len(out))], out[max(0, len(out)-1):])
		}
	}
	leftNothing(t, s, c)
}

// TestContainerdBar: a progress bar is read from containerd before its line ends.
func TestContainerdBar(t *testing.T) {
	t.Parallel()
	c := newContainerd(t)
	on := []string{"--driver", "containerd", "--containerd-address", c.Address()}
	s := newServer(t, on...)
	path := filepath.Join(t.TempDir(), "tool.tar")
	archive, err := containerstest.ToolArchive(tool)
	if err == nil {
		err = os.WriteFile(path, archive, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.ok(append([]string{"image", "import", path}, on...)...)
	s.start()
	s.followsBar()
	leftNothing(t, s, c)
}

// TestContainerdLogFlood: if containerd's logger drops output while the daemon is
// down, a note has the exact number of lines.
func TestContainerdLogFlood(t *testing.T) {
	t.Parallel()
	n := floodLines(t)
	c := newContainerd(t)
	on := []string{"--driver", "containerd", "--containerd-address", c.Address()}
	s := newServer(t, append(on, "--log-bytes", "1M", "--output-total", "1G")...)
	s.ok(append([]string{"image", "import", toolArchive(t)}, on...)...)
	s.start()
	ref := s.submit("--name", "flood", "--mem", "1G", tool, fmt.Sprint("count:", n))
	s.reached(ref, 1)
	s.kill()
	d, err := containerd.New(containerd.Options{Address: c.Address(), Dir: filepath.Join(s.dir, "containerd")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	list, err := d.List(t.Context(), map[string]string{label.Instance: s.instance()})
	if err != nil || len(list) != 1 {
		t.Fatalf("containers %v, %v", list, err)
	}
	if _, err := d.Wait(t.Context(), list[0].ID); err != nil {
		t.Fatal(err)
	}
	s.start()
	s.succeeded(ref)
	if kept, noted := s.flood(ref); kept+noted != n || noted == 0 {
		t.Errorf("%d lines kept, %d noted of %d", kept, noted, n)
	}
	leftNothing(t, s, c)
}

// leftNothing checks that the daemon has removed every container with its files.
func leftNothing(t *testing.T, s *server, c *engines.Containerd) {
	t.Helper()
	dir := filepath.Join(s.dir, "containerd")
	d, err := containerd.New(containerd.Options{Address: c.Address(), Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	eventually(t, "its containers are removed", func() bool {
		list, err := d.List(t.Context(), map[string]string{label.Instance: s.instance()})
		return err == nil && len(list) == 0
	})
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files are left in %s: %v %v", dir, left, err)
	}
}
