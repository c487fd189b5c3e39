package driverfiles

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// machine makes a folder with files; a text that begins with "->" makes a link.
func machine(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if len(text) > 2 && text[:2] == "->" {
			err = os.Symlink(text[2:], path)
		} else {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestVersions(t *testing.T) {
	for text, want := range map[string]string{
		"NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\nGCC version:  gcc version 12.2.0\n":                              "535.104.05",
		"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  (dvs-builder@U22-I3)  Thu Jan 16 06:01:25 UTC 2025\nGCC version: gcc\n": "570.86.15",
		"something else\n": "",
	} {
		if got := Module(machine(t, map[string]string{"proc/driver/nvidia/version": text})); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	root := machine(t, map[string]string{"usr/lib64/libcuda.so.1": "->libcuda.so.535.104.05"})
	if version, path := Library(root); version != "535.104.05" || path != "/usr/lib64/libcuda.so.1" {
		t.Errorf("library %s, %s", version, path)
	}
	if got := fmt.Sprint(VersionIn([]string{"/usr/lib/libcuda.so.550.54.14", "/usr/lib/libnvidia-ml.so.550.54.14", "/usr/lib/libcuda.so.535.5", "/usr/lib/libcuda.so.1", "/usr/lib/libnvidia-egl-wayland.so.1.1.13"})); got != "[535.5 550.54.14]" {
		t.Error(got)
	}
}

func TestToolkitMode(t *testing.T) {
	for text, want := range map[string]string{
		"disable-require = false\n\n[nvidia-container-cli]\nmode = \"x\"\n\n[nvidia-container-runtime]\nlog-level = \"info\"\nmode = \"cdi\"\n\n[nvidia-container-runtime.modes.cdi]\nmode = \"y\"\n": "cdi",
		"[nvidia-container-runtime]\n#mode = \"auto\"\n": "",
	} {
		if got := ToolkitMode(machine(t, map[string]string{"etc/nvidia-container-runtime/config.toml": text})); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestFiles(t *testing.T) {
	empty := machine(t, nil)
	version, path := Library(empty)
	socket, program := Persistence(empty)
	folder, file := Compat(empty)
	if Module(empty)+version+path+folder+file+ToolkitMode(empty) != "" || socket || program {
		t.Error("a machine without a driver has one")
	}
	full := machine(t, map[string]string{"run/nvidia-persistenced/socket": "", "usr/bin/nvidia-persistenced": "", "etc/ld.so.conf.d/gds.conf": "# a comment\n/usr/lib/x\n/usr/local/cuda-12.4/compat\n"})
	if socket, program := Persistence(full); !socket || !program {
		t.Error("persistenced is not found")
	}
	if folder, file := Compat(full); folder != "/usr/local/cuda-12.4/compat" || file != "/etc/ld.so.conf.d/gds.conf" {
		t.Errorf("%s in %s", folder, file)
	}
	if !IsPersistenceSocket("/run/nvidia-persistenced/socket") || !IsPersistenceSocket("/var/run/nvidia-persistenced/socket") || IsPersistenceSocket("/run/other") {
		t.Error("the socket's path")
	}
}
