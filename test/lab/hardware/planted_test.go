package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// reportIn returns the report of a run.
func reportIn(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, "report.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestNoEngine: on a machine without containerd, runc and docker the suite fails and prints
// what is missing. With --no-containers it skips the containers.
func TestNoEngine(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	folders := driverFolders
	driverFolders = nil
	defer func() { driverFolders = folders }()
	for _, engine := range []string{"auto", "docker"} {
		dir := t.TempDir()
		var stderr strings.Builder
		code := run(t.Context(), []string{"--dry-run", "--python", "/nowhere/python3", "--phases", "environment,suite", "--engine", engine, "--out", dir}, &stderr)
		if code != exitFailed || !strings.Contains(stderr.String(), "suite: no container engine: ") {
			t.Errorf("%s: exit code %d\n%s", engine, code, stderr.String())
		}
		text := reportIn(t, dir)
		for _, want := range []string{`docker: docker info: exec: "docker": executable file not found in $PATH`, "--no-containers leaves out what needs one"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in\n%s", engine, want, text)
			}
		}
		if engine == "auto" && os.Getuid() == 0 && cgroups() != noGroups && !strings.Contains(text, `containerd: runc: exec: "runc": executable file not found in $PATH`) {
			t.Errorf("nothing of runc in\n%s", text)
		}
	}
}

// TestUnpacked: run.sh takes the programs of the pack where Go is missing, with tar and xz or
// with Python alone, and prints the problem if neither is possible.
func TestUnpacked(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3 here")
	}
	if python, err = filepath.EvalSymlinks(python); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(python, "-c", "import lzma, sys; print(sys.executable)").Output(); err != nil {
		t.Skip("no Python with lzma here")
	} else {
		python = strings.TrimSpace(string(out)) // the program that a launcher of versions starts
	}
	script, err := os.ReadFile("run.sh")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		tools  []string
		python bool
		pack   string // good, torn, or empty: none
		code   int
		want   string
	}{
		"tar and xz":     {[]string{"tar", "xz"}, false, "good", 0, "the suite: --dry-run"},
		"Python alone":   {nil, true, "good", 0, "the suite: --dry-run"},
		"tar without xz": {[]string{"tar"}, true, "good", 0, "the suite: --dry-run"},
		"neither":        {nil, false, "good", 2, "pack.tar.xz cannot be unpacked: it needs tar and xz, or a python3 with lzma; python3 -m tarfile says: "},
		"a torn pack":    {[]string{"tar", "xz"}, true, "torn", 2, "pack.tar.xz cannot be unpacked: "},
		"no pack, no Go": {[]string{"tar", "xz"}, true, "", 2, "and Go cannot build it here; make "},
		"a pack too old": {nil, true, "empty", 2, "and Go cannot build it here; make "},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			at := func(path, text string, mode os.FileMode) {
				t.Helper()
				path = filepath.Join(root, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), mode); err != nil {
					t.Fatal(err)
				}
			}
			at("tree/test/lab/hardware/run.sh", string(script), 0o755)
			at("tree/.hardware/keep", "", 0o644)
			at("files/README", "", 0o644)
			if c.pack != "empty" {
				for _, program := range []string{"carma", "simtask", "hardware"} {
					at("files/"+program, "#!/bin/sh\nwhile [ $# -gt 0 ]; do case $1 in --bin|--training|--programs) shift 2;; *) echo \"the suite: $*\"; exit;; esac; done\n", 0o755)
				}
			}
			pack := filepath.Join(root, "tree/.hardware/pack.tar.xz")
			if c.pack != "" {
				make := exec.Command(python, "-c", "import sys, tarfile\nwith tarfile.open(sys.argv[1], 'w:xz') as t: t.add(sys.argv[2], '.')", pack, filepath.Join(root, "files"))
				if out, err := make.CombinedOutput(); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			if c.pack == "torn" {
				if err := os.Truncate(pack, 100); err != nil {
					t.Fatal(err)
				}
			}
			tools := filepath.Join(root, "tools")
			for _, name := range append([]string{"dirname", "rm", "mkdir", "tail"}, c.tools...) {
				path, err := exec.LookPath(name)
				if err != nil {
					t.Skip(err)
				}
				at("tools/keep", "", 0o644)
				if err := os.Symlink(path, filepath.Join(tools, name)); err != nil {
					t.Fatal(err)
				}
			}
			if c.python {
				at("tools/python3", "#!/bin/sh\nexec "+python+" \"$@\"\n", 0o755)
			}
			cmd := exec.CommandContext(t.Context(), "/bin/sh", filepath.Join(root, "tree/test/lab/hardware/run.sh"), "--dry-run", "--out", "x")
			cmd.Env = []string{"PATH=" + tools}
			out, _ := cmd.CombinedOutput()
			if got := cmd.ProcessState.ExitCode(); got != c.code || !strings.Contains(string(out), c.want) || c.code != 0 && strings.Count(strings.TrimSpace(string(out)), "\n") > 0 {
				t.Errorf("exit code %d, want %d and %q:\n%s", got, c.code, c.want, out)
			}
		})
	}
}

// TestWakeCUDA: many machines make /dev/nvidia-uvm for the first CUDA process, so the suite
// runs one before it writes the CDI file, and reports if that did not help.
func TestWakeCUDA(t *testing.T) {
	if exists("/dev/nvidia-uvm") {
		t.Skip("it is there")
	}
	dir := t.TempDir()
	python := filepath.Join(dir, "python")
	for script, want := range map[string]string{
		"echo no driver >&2; exit 1": "no /dev/nvidia-uvm, and no CUDA process makes it: exit status 1: no driver",
		"exit 0":                     "no /dev/nvidia-uvm, though CUDA runs: tasks in containers will not find it; nvidia-modprobe -u makes it",
	} {
		if err := os.WriteFile(python, []byte("#!/bin/sh\necho \"$*\" > "+dir+"/asked\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		s := &session{log: &said}
		s.python = python
		s.wakeCUDA(t.Context())
		asked, _ := os.ReadFile(filepath.Join(dir, "asked"))
		if !strings.Contains(said.String(), want) || !strings.Contains(string(asked), "device='cuda'") {
			t.Errorf("asked %q, said %q", asked, said.String())
		}
	}
}

// TestOverlayable: if a folder's file system does not support overlays, as in a container,
// containerd's folder becomes a tmpfs.
func TestOverlayable(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	base := t.TempDir()
	if err := unix.Mount("tmpfs", base, "tmpfs", 0, ""); err != nil {
		t.Skip(err)
	}
	defer func() { _ = unix.Unmount(base, unix.MNT_DETACH) }()
	for _, name := range []string{"lower", "upper", "work", "over"} {
		if err := os.Mkdir(filepath.Join(base, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	over := filepath.Join(base, "over")
	if err := unix.Mount("overlay", over, "overlay", 0, "lowerdir="+base+"/lower,upperdir="+base+"/upper,workdir="+base+"/work"); err != nil {
		t.Skip(err)
	}
	defer func() { _ = unix.Unmount(over, unix.MNT_DETACH) }()
	var said strings.Builder
	s := &session{log: &said}
	for root, falls := range map[string]bool{filepath.Join(over, "c"): true, filepath.Join(base, "c"): false} {
		if err := os.Mkdir(root, 0o755); err != nil {
			t.Fatal(err)
		}
		if falls == (overlay(root) == nil) {
			t.Skipf("an overlay can be made in %s: %v", root, !falls)
		}
		said.Reset()
		undo, err := s.overlayable(root)
		if err != nil {
			t.Fatal(err)
		}
		if err := overlay(root); err != nil {
			t.Error(err)
		}
		if told := strings.Contains(said.String(), "containerd works on a tmpfs"); told != falls {
			t.Errorf("%s: said %q", root, said.String())
		}
		undo()
		if falls && overlay(root) == nil {
			t.Error("the tmpfs is left")
		}
	}
}
