//go:build hardware

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// withoutGroups runs the suite where no control groups are mounted, in a mount
// namespace of its own. before is put before its command.
func withoutGroups(t *testing.T, before string) (dir, out string, code int) {
	t.Helper()
	needRoot(t)
	dir = t.TempDir()
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "sh", "-c",
		"umount --recursive "+groupsAt+" || exit 99; exec "+before+" ./run.sh --dry-run --python /nowhere/python3 --engine containerd --phases environment,suite --out "+dir)
	b, err := cmd.CombinedOutput()
	if code = cmd.ProcessState.ExitCode(); code == 99 {
		t.Skipf("the control groups cannot be unmounted here: %s", b)
	} else if code < 0 {
		t.Fatal(err)
	}
	return dir, string(b), code
}

// TestNoGroups: on a machine that has mounted no control groups the suite mounts them. If it
// may not, it fails and prints what is missing and the fix.
func TestNoGroups(t *testing.T) {
	dir, out, code := withoutGroups(t, "")
	text := reportIn(t, dir)
	if !strings.Contains(text, "| control groups | "+noGroups+" |") || !strings.Contains(text, "| control groups for this run | version 2, mounted by the suite |") {
		t.Errorf("%s\n%s", out, text)
	}
	// Where the kernel's controllers are taken by version 1, containers cannot be made by version
	// 2, and the error says so.
	if code != 0 && !strings.Contains(text, "starts failed: ") {
		t.Errorf("exit code %d\n%s", code, text)
	}

	dir, out, code = withoutGroups(t, "setpriv --bounding-set -sys_admin --inh-caps -all --")
	want := "no control groups are mounted at /sys/fs/cgroup, and mount -t cgroup2 none /sys/fs/cgroup: operation not permitted"
	if text := reportIn(t, dir); code != exitFailed || !strings.Contains(text, want) {
		t.Errorf("exit code %d\n%s\n%s", code, out, text)
	}
}

// TestNodeMissing: the card's device node is not there, as on a machine whose driver
// has made none. The first task cannot start; the suite ends with that, and does not
// try until its time is over.
func TestNodeMissing(t *testing.T) {
	needRoot(t)
	if out := os.Getenv(onDriver); out != "" {
		opt, err := parse([]string{"--out", out, "--minutes", "20", "--phases", "suite", "--engine", "containerd", "--bin", os.Getenv(programsIn), "--training", "../../../images/torch", "--programs", ".", "--python", filepath.Join(out, "python")}, os.Stderr)
		if err != nil {
			t.Fatal(err)
		}
		if err := measure(t.Context(), opt, dryPlan, os.Stderr); err == nil {
			t.Error("the suite has run without the card's node")
		}
		return
	}
	if _, err := os.Stat("/dev/nvidia0"); err == nil {
		t.Skip("a machine with a card's node")
	}
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	idle := filepath.Join(dir, "idle")
	if err := os.WriteFile(idle, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	// A Python with the required modules. No container runs long enough to use it.
	python := filepath.Join(dir, "python")
	answer := `{"stage":"imported","versions":{"torch":"2"},"executable":"` + python + `","folders":[],"gpu":true}`
	if err := os.WriteFile(python, []byte("#!/bin/sh\necho '"+answer+"'\nread x\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run", "^TestNodeMissing$", "-test.v")
	cmd.Env = append(os.Environ(), onDriver+"="+dir, programsIn+"="+built(t), "LD_LIBRARY_PATH="+standInDriver(t), "THIN_GPU="+idle)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	kept, err := os.ReadFile(filepath.Join(dir, "suite.log"))
	if err != nil || !strings.Contains(string(kept), "--- containerd's log has ") || !strings.Contains(string(kept), "--- log of the daemon, try") {
		t.Errorf("the logs of the daemon and of containerd: %v\n%s", err, kept)
	}
	text := reportIn(t, dir)
	if !strings.Contains(text, "a task in a container: task 1") || !strings.Contains(text, "starts failed: ") || !strings.Contains(text, "/dev/nvidia0") || strings.Contains(text, "deadline") {
		t.Errorf("%s", text)
	}
}
