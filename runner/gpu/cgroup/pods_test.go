package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestPods: the pods of a process, in the forms of both drivers of control groups.
func TestPods(t *testing.T) {
	const uid, id = "0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	const inner = "11111111-2222-3333-4444-555555555555"
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"cgroupfs, version 1": {"12:freezer:/kubepods/besteffort/pod" + uid + "/" + id + "\n1:name=systemd:/\n", []string{uid}},
		"cgroupfs, version 2": {"0::/kubepods/pod" + uid + "/" + id + "\n", []string{uid}},
		"systemd":             {"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0f1e2d3c_4b5a_6978_8796_a5b4c3d2e1f0.slice/cri-containerd-" + id + ".scope\n", []string{uid}},
		"from within a pod":   {"0::/../../pod" + uid + "/" + id + "\n", []string{uid}},
		"from a file":         {"0::/kubepods/poddeadbeefdeadbeefdeadbeefdeadbeef/" + id + "\n", []string{"deadbeefdeadbeefdeadbeefdeadbeef"}},
		"nested":              {"0::/kubepods/pod" + uid + "/" + id + "/kubepods/pod" + inner + "/x\n", []string{inner, uid}},
		"none":                {"0::/system.slice/podman.service\n", nil},
		"docker":              {"0::/docker/" + id + "\n", nil},
		"a user's own name":   {"0::/user.slice/pod-of-mine\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if err := os.MkdirAll(filepath.Join(root, "proc/7"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, "proc/7/cgroup"), []byte(tc.text), 0o644); err != nil {
				t.Fatal(err)
			}
			if got, err := Pods(root, 7); err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("%v, %v, want %v", got, err, tc.want)
			}
		})
	}
	if _, err := Pods(t.TempDir(), 7); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no such process: %v", err)
	}
}
