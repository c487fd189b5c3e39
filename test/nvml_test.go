//go:build e2e

package test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"carma/internal/units"

	"github.com/moby/moby/client"

	"carma/runner/api"
)

// thinDriver builds a library with the functions of NVIDIA's driver that carma
// calls, for one card, and returns its folder. The file named by THIN_GPU has the
// card's state.
func thinDriver(t *testing.T) string {
	t.Helper()
	headers, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml/pkg/nvml").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cc := exec.Command("cc", "-shared", "-fPIC", "-w", "-DNEW", "-I", strings.TrimSpace(string(headers)),
		"-o", filepath.Join(dir, "libnvidia-ml.so.1"), "../runner/gpu/nvml/testdata/driver.c")
	if out, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	return dir
}

// replaceFile replaces a file while somebody may read it.
func replaceFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+"~", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+"~", path); err != nil {
		t.Fatal(err)
	}
}

// TestNVML runs a daemon on the library of NVIDIA's driver. It finds a task's
// processes by their container, on a real engine, also after a restart. A GPU
// that reports a fatal error is drained, and used again after its reset.
func TestNVML(t *testing.T) {
	t.Parallel()
	needRoot(t)
	runc, err := exec.LookPath("runc")
	if err != nil {
		t.Skip("no runc here")
	}
	e := newDockerd(t)
	e.args = []string{"--add-runtime", "nvidia=" + runc} // there is no device to attach
	e.start()
	if err := e.seen.importProgram(t.Context(), filepath.Join(scratch, "tool"), "/tool", tool); err != nil {
		t.Fatal(err)
	}
	s := newServer(t)
	s.useEngine(e)
	card, gate := filepath.Join(s.root, "card"), filepath.Join(s.root, "gate")
	show := func(lines string) { t.Helper(); replaceFile(t, card, lines) }
	show("")
	if err := os.Mkdir(gate, 0o755); err != nil {
		t.Fatal(err)
	}
	s.flags = []string{"--gpus", "nvml", "--attach", "runtime", "--policy", "magm", "--sample-every", "100ms", "--warm-up", "0s"}
	s.env = []string{"LD_LIBRARY_PATH=" + thinDriver(t), "THIN_GPU=" + card}
	s.start()
	gpu := func() api.GPU {
		var gpus []api.GPU
		s.decode(&gpus, "gpus", "--json")
		return gpus[0]
	}
	if g := gpu(); g.UUID != "GPU-thin" || g.Capacity != int64(15*units.GiB) {
		t.Fatalf("GPU %+v", g)
	}
	ref := s.submit("--mem", "4G", "-v", gate+":/gate", tool, "gate:/gate/open")
	task := s.running(ref)
	in, err := e.seen.cli.ContainerInspect(t.Context(), task.Attempts[0].Container, client.ContainerInspectOptions{})
	if err != nil {
		t.Fatal(err)
	}
	processes := fmt.Sprintf("process %d 3072\nprocess %d 1024\n", in.Container.State.Pid, os.Getpid())
	show(processes)
	attributed := func() bool {
		g := gpu()
		return len(g.Tasks) == 1 && g.Tasks[0].Used == int64(3*units.GiB) && g.Foreign == int64(units.GiB) && g.Metrics == "gpm"
	}
	eventually(t, "the task's process is found, and the stranger's", attributed)
	s.kill()
	s.start()
	eventually(t, "they are found again", attributed)

	show(processes + "xid 79\n")
	eventually(t, "the GPU is drained", func() bool { return strings.Contains(gpu().Fault, "fallen off the bus (Xid 79)") })
	waits := s.submit("--mem", "1G", tool, "out:done")
	s.until(waits, "the reason", func(t *api.Task) bool {
		return strings.Contains(t.Waits, "out of service: it has fallen off the bus (Xid 79); to mend it: restart the machine")
	})
	s.running(ref) // the task continues
	show(processes + "lost\n")
	s.logged("the GPU is lost")
	show(processes)
	s.succeeded(waits)
	if err := os.WriteFile(filepath.Join(gate, "open"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if task := s.succeeded(ref)[0]; task.Attempts[0].Peak != int64(3*units.GiB) {
		t.Errorf("its peak is %d", task.Attempts[0].Peak)
	}
	s.verified()
}
