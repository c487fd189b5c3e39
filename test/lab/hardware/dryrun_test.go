//go:build hardware

package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"carma/containers/cdi"
)

func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root, for containerd")
	}
}

// rows returns the rows of a CSV file, by column.
func rows(t *testing.T, dir, name string) (out []map[string]string) {
	t.Helper()
	all, err := csv.NewReader(opened(t, dir, name)).ReadAll()
	if err != nil || len(all) < 2 {
		t.Fatalf("%s: %d lines, %v", name, len(all), err)
	}
	for _, row := range all[1:] {
		m := map[string]string{}
		for i, column := range all[0] {
			m[column] = row[i]
		}
		out = append(out, m)
	}
	return out
}

// TestDryRun runs the whole suite on a simulated GPU, with containers of its own
// containerd and without network. If PyTorch is installed, it trains on the CPU.
func TestDryRun(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "unshare", "--net", "./run.sh", "--dry-run", "--engine", "containerd", "--out", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 8 {
		t.Errorf("%d files, %v", len(files), err)
	}
	modes := rows(t, dir, "suite.csv")
	if len(modes) != 3 || modes[0]["mode"] != "exclusive" || modes[1]["mode"] != "sharing" || modes[2]["why_not"] == "" {
		t.Fatalf("suite.csv: %v", modes)
	}
	for _, m := range modes[:2] {
		if m["succeeded"] != "3" || m["makespan_s"] == "" || m["energy_j"] == "" {
			t.Errorf("%v\n%s", m, out)
		}
	}
	for _, task := range rows(t, dir, "tasks.csv") {
		if task["phase"] != "succeeded" || task["peak_mib"] == "" || task["slowdown"] == "" {
			t.Errorf("%v", task)
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, "report.md"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(page), "no Python with PyTorch") {
		t.Skip("no Python with PyTorch here: the trainings were not tried")
	}
	if !strings.Contains(string(page), "mnist_cnn on cpu, through containerd") {
		t.Errorf("no training ran in a container:\n%s", page)
	}
	for _, row := range rows(t, dir, "estimates.csv") {
		if row["status"] != "ok" || row["step_s"] == "" || row["estimate_mib"] == "" || row["reserved_mib"] != "" {
			t.Errorf("%v", row)
		}
	}
	if got := rows(t, dir, "pairs.csv"); len(got) != 1 || got[0]["overlap_speed_a"] == "" {
		t.Errorf("%v", got)
	}
}

// onDriver makes the test's program the child of TestOnDriver; its value is the
// folder to write to. programsIn is the folder of carma.
const (
	onDriver   = "HARDWARE_ON_DRIVER"
	programsIn = "HARDWARE_PROGRAMS"
)

// built is a folder with carma and simtask.
func built(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"carma", "simtask"} {
		cmd := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, name), "carma/cmd/"+name)
		cmd.Env = append(os.Environ(), "CGO_LDFLAGS=-O2 -g -Wl,-z,lazy")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return dir
}

// TestOnDriver takes the path of a machine with a GPU, with a stand-in for the
// driver's library and trainings on the CPU. carma reads the card by NVML, a CDI
// file is written for it, and trainings run in containers that have its node,
// alone and together.
func TestOnDriver(t *testing.T) {
	needRoot(t)
	if out := os.Getenv(onDriver); out != "" {
		child(t, out)
		return
	}
	if _, err := os.Stat("/proc/driver/nvidia"); err == nil {
		t.Skip("a machine with a GPU: run the suite itself")
	}
	library := standInDriver(t)
	dir, out := onStandIn(t, "^TestOnDriver$", library)
	for _, task := range rows(t, dir, "tasks.csv") {
		if task["phase"] != "succeeded" || task["step_s"] == "" || task["execution_s"] == "" {
			t.Errorf("%v\n%s", task, out)
		}
	}
	for _, p := range rows(t, dir, "profiles.csv") {
		if p["metrics"] == "" || p["smact_mean"] == "" || p["again"] == "" {
			t.Errorf("%v", p)
		}
	}
	if found, _ := filepath.Glob(filepath.Join(cdi.Dirs[1], "carma-hardware*")); len(found) > 0 {
		t.Errorf("left behind: %v", found)
	}
}

// onStandIn runs a test in a process of its own that has the stand-in for the driver. It
// returns the folder of the results, and what the test said.
func onStandIn(t *testing.T, name, library string) (dir string, out []byte) {
	t.Helper()
	node(t, "/dev/nvidia0")
	dir = t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run", name, "-test.v")
	idle := filepath.Join(dir, "idle") // state of the card: no process
	if err := os.WriteFile(idle, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(os.Environ(), onDriver+"="+dir, programsIn+"="+built(t), "LD_LIBRARY_PATH="+library, "THIN_GPU="+idle)
	if out, err = cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if bytes.Contains(out, []byte("--- SKIP")) {
		t.Skipf("%s", out)
	}
	return dir, out
}

// child runs the suite with small trainings on the CPU.
func child(t *testing.T, out string) {
	p := dryPlan
	p.window, p.warm, p.length = 1, 0.2, 5
	p.suite = []training{{"mnist_cnn", "mnist", 4, plain}, {"resnet18", "cifar100", 2, plain}}
	childOf(t, out, "pairs,suite", p)
}

// childOf runs phases of a plan. HARDWARE_PYTHON names a Python with PyTorch.
func childOf(t *testing.T, out, phases string, p plan) {
	opt, err := parse([]string{"--out", out, "--minutes", "20", "--phases", phases, "--engine", "containerd", "--bin", os.Getenv(programsIn), "--training", "../../../images/torch", "--programs", ".", "--python", os.Getenv("HARDWARE_PYTHON")}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	var log bytes.Buffer
	err = measure(ctx, opt, p, &log)
	if err != nil && strings.Contains(err.Error(), "has PyTorch") {
		t.Skip(err)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, log.String())
	}
}

// standInDriver builds a library with the functions of NVIDIA's driver that carma
// and the suite call, for one card, and returns its folder.
func standInDriver(t *testing.T, flags ...string) string {
	t.Helper()
	headers, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Dir}}", "github.com/NVIDIA/go-nvml/pkg/nvml").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	args := append([]string{"-shared", "-fPIC", "-w", "-DNEW", "-I", strings.TrimSpace(string(headers)),
		"-o", filepath.Join(dir, "libnvidia-ml.so.1"), "../../../runner/gpu/nvml/testdata/driver.c", "testdata/minor.c"}, flags...)
	cc := exec.CommandContext(t.Context(), "cc", args...)
	if out, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	return dir
}

// node makes a null device and removes it after the test.
func node(t *testing.T, path string) {
	t.Helper()
	err := unix.Mknod(path, unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3)))
	switch {
	case errors.Is(err, os.ErrExist):
		return
	case err != nil:
		t.Skipf("cannot make %s: %v", path, err)
	}
	t.Cleanup(func() { _ = os.Remove(path) })
}

// TestSuspendTasks: carma suspends and resumes a simulated task in a container, as the
// plan says, and another runs meanwhile. That is with real containers and control groups.
func TestSuspendTasks(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "./run.sh", "--dry-run", "--engine", "containerd", "--phases", "suspend-tasks", "--out", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	did := map[string]int{}
	for _, row := range rows(t, dir, "suspended-tasks.csv") {
		did[row["did"]+": "+row["result"]]++
		if row["did"] == "another task meanwhile" && row["note"] != "the suspended task printed nothing" {
			t.Errorf("%v", row)
		}
	}
	if did["suspend: done"] != 3 || did["resume: done"] != 3 || did["suspended 3 times: succeeded"] != 1 || did["undisturbed: succeeded"] != 1 || did["another task meanwhile: succeeded"] != 1 {
		t.Errorf("%v\n%s", did, out)
	}
	page, err := os.ReadFile(filepath.Join(dir, "report.md"))
	if err != nil || !strings.Contains(string(page), "| suspended 3 times |  | succeeded |") {
		t.Errorf("%v: %s", err, page)
	}
}

// TestSuspendTasksOnDriver takes the path of a machine with a GPU: stand-ins for the
// driver's libraries, trainings on the CPU in containers, which are frozen and thawed.
// The suspended training ends with the losses of the undisturbed one.
func TestSuspendTasksOnDriver(t *testing.T) {
	needRoot(t)
	if out := os.Getenv(onDriver); out != "" {
		p := dryPlan
		p.aside = asidePlan{training{"mnist_cnn", "mnist", 2, plain}, training{"mlp_128x2", "mnist", 4, plain}, 60, 10, "1G"}
		childOf(t, out, "suspend-tasks", p)
		return
	}
	if _, err := os.Stat("/proc/driver/nvidia"); err == nil {
		t.Skip("a machine with a GPU: run the suite itself")
	}
	library := standInDriver(t, `-DVERSION="580.65.06"`)
	if out, err := exec.CommandContext(t.Context(), "cc", "-shared", "-fPIC", "-o", filepath.Join(library, "libcuda.so.1"), "testdata/suspend.c").CombinedOutput(); err != nil {
		t.Skipf("cc: %v\n%s", err, out)
	}
	dir, out := onStandIn(t, "^TestSuspendTasksOnDriver$", library)
	times := 0
	for _, row := range rows(t, dir, "suspended-tasks.csv") {
		if row["did"] == "suspend" && row["result"] == "done" {
			times++
		}
		if strings.HasPrefix(row["did"], "suspended ") && (row["did"] != "suspended 10 times" || row["result"] != "succeeded" || !strings.Contains(row["note"], "the same loss at all 60 steps")) {
			t.Errorf("%v\n%s", row, out)
		}
	}
	if times != 10 {
		t.Errorf("suspended %d times\n%s", times, out)
	}
}

// playedDriver builds a library with the driver's checkpoint functions.
func playedDriver(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "libcuda.so.1")
	if out, err := exec.CommandContext(t.Context(), "cc", "-shared", "-fPIC", "-o", path, "testdata/suspend.c").CombinedOutput(); err != nil {
		t.Skipf("cc: %v\n%s", err, out)
	}
	return path
}

// suspend.py goes through all its steps with a library that simulates the driver, and the phase
// keeps its table.
func TestSuspendScript(t *testing.T) {
	library := playedDriver(t)
	s, _ := sessionAt(t)
	s.plan, s.programs, s.training, s.work = dryPlan, ".", "../../../images/torch", t.TempDir()
	if err := s.findPython(t.Context()); err != nil {
		t.Skip(err)
	}
	s.env = []string{"SUSPEND_LIBRARY=" + library}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	s.plan.suspend = []string{"sizes=0.01", "training=mnist_cnn,2,12"}
	if err := s.suspend(ctx); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(s.out, "suspend.csv"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"a process with 0.01 GiB,2,the same", "undisturbed runs equal, suspended one equal", "another training meanwhile", "after step 1"} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %q in\n%s", want, b)
		}
	}
}
