package cdi

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
)

const file = `cdiVersion: "0.5.0"
kind: nvidia.com/gpu
containerEdits:
  env: ["NVIDIA_VISIBLE_DEVICES=void"]
devices:
- name: GPU-a
  containerEdits:
    deviceNodes: [{path: /dev/nvidia0, hostPath: /dev/null}]
- name: GPU-b
  containerEdits:
    deviceNodes: [{path: /dev/nvidia1, hostPath: /dev/null}]
`

func read(t *testing.T, text string) *Files {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "nvidia.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := Read([]string{filepath.Join(dir, "none"), dir})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestFiles(t *testing.T) {
	f := read(t, file)
	if err := f.Missing([]string{"GPU-a", "GPU-b"}); err != nil {
		t.Error(err)
	}
	if err := f.Missing([]string{"GPU-a", "GPU-c"}); err == nil || !strings.Contains(err.Error(), "nvidia.com/gpu=GPU-c") {
		t.Errorf("a GPU that no file has: %v", err)
	}
	if got := f.Nodes([]string{"GPU-b", "GPU-a"}); !slices.Equal(got, []string{"/dev/nvidia0", "/dev/nvidia1"}) {
		t.Errorf("nodes %q", got)
	}
	var spec specs.Spec
	if err := f.Inject(&spec, []string{"GPU-b"}); err != nil {
		t.Fatal(err)
	}
	if d := spec.Linux.Devices; len(d) != 1 || d[0].Path != "/dev/nvidia1" || !slices.Contains(spec.Process.Env, "NVIDIA_VISIBLE_DEVICES=void") {
		t.Errorf("injected %+v, %q", d, spec.Process.Env)
	}
	if err := f.Inject(&spec, []string{"GPU-c"}); err == nil {
		t.Error("a GPU that no file has was injected")
	}
}

// TestBadFile: if a GPU is missing, the error names the fault of a broken file.
func TestBadFile(t *testing.T) {
	f := read(t, "kind: nvidia.com/gpu\ndevices: 3\n")
	if err := f.Missing([]string{"GPU-a"}); err == nil || !strings.Contains(err.Error(), "nvidia.yaml") {
		t.Errorf("%v, want one that names the file", err)
	}
}

// TestByIndex: a GPU that an old toolkit's files name only by its index is not found, and that
// the message lists the existing names.
func TestByIndex(t *testing.T) {
	f := read(t, strings.NewReplacer("GPU-a", `"0"`, "GPU-b", "all").Replace(file))
	err := f.Missing([]string{"GPU-a"})
	if err == nil || !strings.Contains(err.Error(), "nvidia.com/gpu=GPU-a, but 0, all; nvidia-ctk cdi generate") {
		t.Errorf("%v", err)
	}
}

// TestMadeAnew checks that new instances after a change of MIG are missing until the CDI files
// are written again and read again.
func TestMadeAnew(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) *Files {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "nvidia.yaml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		f, err := Read([]string{dir})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	stale := write(file)
	if stale.Missing([]string{"MIG-c"}) == nil {
		t.Error("an instance that no file has is there")
	}
	anew := write(strings.ReplaceAll(file, "GPU-b", "MIG-c"))
	if err := anew.Missing([]string{"GPU-a", "MIG-c"}); err != nil {
		t.Error(err)
	}
	if anew.Missing([]string{"GPU-b"}) == nil {
		t.Error("a GPU that was split is still there")
	}
}

// TestMounts: containers get the files of all devices, without the files of other
// vendors.
func TestMounts(t *testing.T) {
	f := read(t, `cdiVersion: "0.5.0"
kind: nvidia.com/gpu
containerEdits:
  mounts: [{hostPath: /usr/lib/libcuda.so.550.54.14, containerPath: /usr/lib/libcuda.so.550.54.14}]
devices:
- name: GPU-a
  containerEdits:
    mounts: [{hostPath: /run/nvidia-persistenced/socket, containerPath: /run/nvidia-persistenced/socket}, {hostPath: /usr/lib/libcuda.so.550.54.14, containerPath: /x}]
`)
	if got := f.Mounts(); !slices.Equal(got, []string{"/run/nvidia-persistenced/socket", "/usr/lib/libcuda.so.550.54.14"}) {
		t.Errorf("%q", got)
	}
	if got := read(t, strings.ReplaceAll(file, "nvidia.com", "other.com")).Mounts(); len(got) != 0 {
		t.Errorf("%q", got)
	}
}
