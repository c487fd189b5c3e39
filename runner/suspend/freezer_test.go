package suspend

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// frozenID is a container's name.
const frozenID = "4f9c1d2e3b4a5968778695a4b3c2d1e0f1e2d3c4b5a69788796a5b4c3d2e1f00"

// files makes files below a folder.
func files(t *testing.T, root string, all map[string]string) {
	t.Helper()
	for name, text := range all {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFreezerGroups: the group is found and written in both versions, and freezing waits
// for its state.
func TestFreezerGroups(t *testing.T) {
	c := Container{ID: frozenID, PIDs: []int{40, 41}} // 40 has ended
	for name, tt := range map[string]struct {
		cgroup, file, yes, no string
		said                  map[bool]map[string]string
	}{
		"version 2": {
			"0::/system.slice/docker-" + frozenID + ".scope/inner\n",
			"sys/fs/cgroup/system.slice/docker-" + frozenID + ".scope/cgroup.freeze", "1", "0",
			map[bool]map[string]string{
				true:  {"sys/fs/cgroup/system.slice/docker-" + frozenID + ".scope/cgroup.events": "populated 1\nfrozen 1\n"},
				false: {"sys/fs/cgroup/system.slice/docker-" + frozenID + ".scope/cgroup.events": "populated 1\nfrozen 0\n"},
			},
		},
		"version 1": {
			"4:freezer:/docker/" + frozenID + "\n0::/system.slice/containerd.service\n",
			"sys/fs/cgroup/freezer/docker/" + frozenID + "/freezer.state", "FROZEN", "THAWED", nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			files(t, root, map[string]string{"proc/41/cgroup": tt.cgroup, tt.file: "x"})
			f := CgroupFreezer{Root: root}
			for _, freeze := range []bool{true, false, true} {
				files(t, root, tt.said[freeze])
				do, want := f.Freeze, tt.yes
				if !freeze {
					do, want = f.Thaw, tt.no
				}
				if err := do(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				if got, _ := os.ReadFile(filepath.Join(root, tt.file)); string(got) != want {
					t.Errorf("%q", got)
				}
				if got, err := f.Frozen(t.Context(), c); got != freeze || err != nil {
					t.Errorf("%v, %v", got, err)
				}
			}
			if tt.said == nil {
				return
			}
			ctx, stop := context.WithCancel(t.Context())
			stop()
			if err := f.Thaw(ctx, c); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "has not changed") {
				t.Error(err)
			}
		})
	}
	f := CgroupFreezer{Root: t.TempDir()}
	if err := f.Freeze(t.Context(), c); err != nil {
		t.Errorf("a container that has ended: %v", err)
	}
	files(t, f.Root, map[string]string{"proc/41/cgroup": "0::/\n", "proc/41/stat": "41 (a) S" + strings.Repeat(" 1", 30)})
	if err := f.Freeze(t.Context(), c); err == nil || !strings.Contains(err.Error(), "no control group of "+frozenID) {
		t.Error(err)
	}
}

// TestFreezerKernel: with groups of the kernel's, where this machine has them.
func TestFreezerKernel(t *testing.T) {
	for name, mount := range map[string]string{"version 1": "/sys/fs/cgroup/freezer", "version 2": "/sys/fs/cgroup", "version 2 beside 1": "/sys/fs/cgroup/unified"} {
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat(filepath.Join(mount, "cgroup.procs")); err != nil {
				t.Skip("this machine has none: ", err)
			}
			root := t.TempDir()
			top := "sys/fs/cgroup"
			if name == "version 1" {
				top += "/freezer"
			}
			for link, to := range map[string]string{"proc": "/proc", top: mount} {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(root, link)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
					t.Fatal(err)
				}
			}
			parent := filepath.Join(mount, fmt.Sprintf("carma-test-%d", os.Getpid()))
			group := filepath.Join(parent, frozenID)
			defer func() { os.Remove(group); os.Remove(parent) }()
			if err := os.MkdirAll(group, 0o755); err != nil {
				t.Skip("no group can be made: ", err)
			}
			// It counts forever and writes the present number into a file.
			out := filepath.Join(t.TempDir(), "count")
			cmd := exec.Command("sh", "-c", `n=0; while :; do n=$((n+1)); echo $n > "$0"; done`, out)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
			pid := cmd.Process.Pid
			if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
				t.Skip("no process can be put into a group: ", err)
			}
			f, c := CgroupFreezer{Root: root}, Container{ID: frozenID, PIDs: []int{pid}}
			for range 3 {
				freezeOnce(t, f, c, out)
			}
		})
	}
}

// freezeOnce freezes a container and thaws it, and checks that its output does not grow
// between.
func freezeOnce(t *testing.T, f CgroupFreezer, c Container, out string) {
	t.Helper()
	read := func() string { text, _ := os.ReadFile(out); return string(text) }
	for range 2 { // may be repeated
		if err := f.Freeze(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	before := read()
	time.Sleep(20 * time.Millisecond)
	if after := read(); after != before {
		t.Fatalf("it counts while it is frozen: %q, %q", before, after)
	}
	if frozen, err := f.Frozen(t.Context(), c); !frozen || err != nil {
		t.Fatalf("%v, %v", frozen, err)
	}
	for range 2 {
		if err := f.Thaw(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(time.Minute); read() == before || read() == ""; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not count any more")
		}
	}
}
