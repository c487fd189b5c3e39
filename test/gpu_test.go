//go:build e2e && gpu

package test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"carma/containers"
	"carma/containers/cdi"
	"carma/containers/containerd"
	"carma/containers/containerstest"
	engines "carma/containers/containerstest/engine"
	"carma/containers/docker"
)

// toolkit is the real NVIDIA Container Runtime in CDI mode, with four GPUs that
// do not exist.
type toolkit struct{ runtime, cdi string }

func newToolkit(t *testing.T) toolkit {
	t.Helper()
	needRoot(t)
	dir, err := os.MkdirTemp("/tmp", "g")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if out, err := exec.Command("setup/nvidia-runtime.sh", dir, "4").CombinedOutput(); err != nil {
		t.Fatalf("nvidia-runtime.sh: %v: %s", err, out)
	}
	return toolkit{runtime: filepath.Join(dir, "nvidia-runtime"), cdi: filepath.Join(dir, "cdi")}
}

// uuid returns the UUID of a GPU of the toolkit.
func uuid(i int) string { return fmt.Sprintf("GPU-00000000-0000-0000-0000-%012d", i) }

// grants are the GPUs that the containers of a test get.
var grants = [][]int{{0}, {2}, {1, 3}, {0, 1, 2, 3}, {}}

// seeTheirGPUs runs one container for each of grants, all at once. It checks that
// each has the device nodes and the environment of its GPUs and of no others.
func seeTheirGPUs(t *testing.T, d containers.Driver, image string, mode containers.Attach, files *cdi.Files) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for i, gpus := range grants {
		ids, want, nodes := []string{}, []string{}, []string{}
		for _, g := range gpus {
			ids = append(ids, uuid(g))
			want = append(want, fmt.Sprintf("nvidia%d", g))
			nodes = append(nodes, fmt.Sprintf("/dev/nvidia%d", g))
		}
		visible := "void"
		if len(gpus) > 0 {
			visible = strings.Join(ids, ",")
			want = append(want, "nvidiactl")
		}
		spec := containers.Spec{
			Name: fmt.Sprintf("carma-gpu-%s-%d", mode, i), Image: image, GPUs: ids, Attach: mode, NoNewPrivileges: true,
			Command: []string{"devices", "env:NVIDIA_VISIBLE_DEVICES", "block:0"},
		}
		id, err := d.Create(ctx, spec)
		if err != nil {
			t.Fatalf("%s: %v", mode, err)
		}
		t.Cleanup(func() { _ = d.Remove(context.Background(), id) })
		if err := d.Start(ctx, id); err != nil {
			t.Fatalf("%s: %v", mode, err)
		}
		var lines []string
		logCtx, stop := context.WithCancel(ctx)
		_ = d.Logs(logCtx, id, time.Time{}, true, func(_ time.Time, _ containers.Stream, line []byte, _ bool) {
			if lines = append(lines, string(line)); len(lines) == 2 {
				stop()
			}
		})
		stop()
		if len(lines) != 2 || lines[0] != strings.Join(want, " ") {
			t.Errorf("%s: with GPUs %v it sees %q, want %q", mode, gpus, lines, want)
		}
		// In CDI mode the files set the variable to void, so that GPUs are not injected twice. The
		// containerd driver sets it back.
		if len(lines) == 2 && lines[1] != "NVIDIA_VISIBLE_DEVICES="+visible && lines[1] != "NVIDIA_VISIBLE_DEVICES=void" {
			t.Errorf("%s: with GPUs %v it has %s", mode, gpus, lines[1])
		}
		// The daemon makes this check after the start.
		got, err := d.Attached(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if got.Nodes == nil {
			t.Errorf("%s: the container's /dev was not looked at", mode)
		}
		if files != nil && !slices.Equal(containers.OnlyGPUNodes(files.Nodes(ids)), nodes) {
			t.Errorf("%s: the CDI files have %q for GPUs %v", mode, files.Nodes(ids), gpus)
		}
		if err := containers.CheckGPUs(spec, got, nodes); err != nil {
			t.Errorf("%s: %v", mode, err)
		}
		if err := containers.CheckGPUs(spec, got, append(nodes, "/dev/nvidia9")); len(gpus) > 0 && err == nil {
			t.Errorf("%s: a GPU that is not there is not missed", mode)
		}
	}
}

// gpuDocker returns a Docker for this test, with the toolkit's runtime and the tests' image.
func gpuDocker(t *testing.T) *docker.Driver {
	t.Helper()
	kit := newToolkit(t)
	e := newDockerd(t)
	e.args = []string{"--add-runtime", "nvidia=" + kit.runtime}
	e.start()
	e.copyImage(tool)
	d, err := docker.New(docker.Options{Host: e.host(), Network: "none"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// TestGPUsDocker tests Docker with NVIDIA's runtime.
func TestGPUsDocker(t *testing.T) {
	d := gpuDocker(t)
	found, err := d.Ping(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	mode, why, err := containers.ChooseAttach(containers.Choice{Driver: d.Name(), Engine: found, CDI: fmt.Errorf("not here")})
	if err != nil || mode != containers.AttachRuntime {
		t.Errorf("chosen: %s (%s), %v", mode, why, err)
	}
	seeTheirGPUs(t, d, tool, containers.AttachRuntime, nil)
}

// gpuContainerd returns a containerd for this test, with the toolkit and the tests' image.
func gpuContainerd(t *testing.T) *containerd.Driver {
	t.Helper()
	kit := newToolkit(t)
	root, err := os.MkdirTemp("/tmp", "cd")
	if err != nil {
		t.Fatal(err)
	}
	c, err := engines.NewContainerd(root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	d, err := containerd.New(containerd.Options{
		Address: c.Address(), Dir: filepath.Join(root, "out"), Network: "none", Logger: carma,
		CDIDirs: []string{kit.cdi}, NVIDIARuntime: kit.runtime,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	tar, err := containerstest.ToolArchive(tool)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Import(t.Context(), bytes.NewReader(tar)); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestGPUsContainerd tests containerd with CDI files and with NVIDIA's runtime.
func TestGPUsContainerd(t *testing.T) {
	d := gpuContainerd(t)
	found, err := d.Ping(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	files, err := cdi.Read(found.CDIDirs)
	if err != nil {
		t.Fatal(err)
	}
	for missing, want := range map[error]containers.Attach{
		files.Missing([]string{uuid(0), uuid(3)}): containers.AttachCDI,
		files.Missing([]string{uuid(0), uuid(7)}): containers.AttachRuntime,
	} {
		if mode, why, err := containers.ChooseAttach(containers.Choice{Driver: d.Name(), Engine: found, CDI: missing}); err != nil || mode != want {
			t.Errorf("chosen: %s (%s), %v, want %s", mode, why, err, want)
		}
	}
	seeTheirGPUs(t, d, tool, containers.AttachCDI, files)
	seeTheirGPUs(t, d, tool, containers.AttachRuntime, nil)

	// A GPU that no file names is the machine's fault. It is reported before the
	// start.
	_, err = d.Create(t.Context(), containers.Spec{Name: "carma-gpu-none", Image: tool, GPUs: []string{uuid(7)}, Attach: containers.AttachCDI})
	if err == nil || !containers.MachineFault(err.Error()) || !strings.Contains(err.Error(), uuid(7)) {
		t.Errorf("an unknown GPU: %v", err)
	}
}
