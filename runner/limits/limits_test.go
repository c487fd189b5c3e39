package limits

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carma/runner/limits/standin"
)

// machine is a fake /proc and /sys, with a tool that simulates nvidia-smi.
type machine struct {
	*testing.T
	root string
	smi  *standin.SMI
	k    *Keeper
}

func newMachine(t *testing.T, version string) *machine {
	t.Helper()
	m := &machine{T: t, root: t.TempDir()}
	m.write("sys/fs/cgroup/cgroup.controllers", "memory pids\n")
	m.write("proc/sys/kernel/random/boot_id", "boot-1\n")
	var err error
	if m.smi, err = standin.New(t.TempDir(), m.root, version); err != nil {
		t.Fatal(err)
	}
	m.k = &Keeper{Tool: Tool{Path: m.smi.Path}, Root: m.root, Dir: filepath.Join(t.TempDir(), "limits")}
	return m
}

func (m *machine) write(name, text string) {
	m.Helper()
	path := filepath.Join(m.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		m.Fatal(err)
	}
}

// process creates a process in a new group and returns the group's folder.
func (m *machine) process(pid int, group string) string {
	m.Helper()
	m.write(fmt.Sprintf("proc/%d/cgroup", pid), "0::"+group+"\n")
	dir := filepath.Join(m.root, "sys/fs/cgroup", group)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		m.Fatal(err)
	}
	return dir
}

func (m *machine) guaranteed(gpu string, want int) {
	m.Helper()
	if got, err := m.smi.Guaranteed(gpu); err != nil || got != want {
		m.Errorf("%d MiB of %s are guaranteed, %v; want %d", got, gpu, err, want)
	}
}

func TestTool(t *testing.T) {
	m := newMachine(t, "615.36.01")
	m.process(7, "/carma/a")
	const group = "/sys/fs/cgroup/carma/a"
	for _, row := range []struct{ set, get Limit }{
		{Limit{Soft: 3 * mib, Hard: 5 * mib}, Limit{Soft: 3 * mib, Hard: 5 * mib}},
		{Limit{Soft: 3*mib + 1, Hard: 4*mib + 1}, Limit{Soft: 3 * mib, Hard: 5 * mib}}, // never less than asked for
		{Limit{}, Limit{}},
	} {
		if err := m.k.Tool.Set(t.Context(), group, "GPU-a", row.set); err != nil {
			t.Fatal(err)
		}
		if got, err := m.k.Tool.Get(t.Context(), group, "GPU-a"); err != nil || got != row.get {
			t.Errorf("set %+v, got %+v, %v; want %+v", row.set, got, err, row.get)
		}
	}
	err := m.k.Tool.Set(t.Context(), "/sys/fs/cgroup/none", "GPU-a", Limit{Hard: mib})
	if err == nil || !strings.Contains(err.Error(), "Not Found") || strings.Contains(err.Error(), "\n") {
		t.Errorf("a group that is not there: %v", err)
	}
}

func TestParseLimit(t *testing.T) {
	for _, row := range []struct {
		out  string
		want Limit
		bad  bool
	}{
		{"namespace: /sys/fs/cgroup/x\nsoft limit: 4096 MiB\nhard limit: 8192 MiB\ncurrent used: 512 MiB\n", Limit{4096 * mib, 8192 * mib}, false},
		{"  Soft Limit : 0 MiB\r\n  Hard Limit : max\n", Limit{}, false},
		{"soft limit: 0 MiB\nhard limit: Max\n", Limit{}, false},
		{"soft limit: 1 MiB\n", Limit{}, true},
		{"soft limit: 1 GiB\nhard limit: 2 MiB\n", Limit{}, true},
		{"soft limit: none\nhard limit: 2 MiB\n", Limit{}, true},
		{"soft limit: 99999999999999999999 MiB\nhard limit: 2 MiB\n", Limit{}, true},
		{"", Limit{}, true},
	} {
		if got, err := parseLimit(row.out); got != row.want || (err != nil) != row.bad {
			t.Errorf("%q: %+v, %v", row.out, got, err)
		}
	}
}

func TestDetect(t *testing.T) {
	for _, row := range []struct {
		name, version string
		change        func(*machine)
		uid           int
		why           string // empty if it can
		kernel        bool
	}{
		{"can", "615.36.01", func(*machine) {}, 0, "", false},
		{"dmem", "620.1", func(m *machine) { m.write("sys/fs/cgroup/dmem.capacity", "") }, 0, "", true},
		{"old", "580.95.05", func(*machine) {}, 0, "driver 580.95.05 is too old", false},
		{"no program", "615.1", func(m *machine) { m.k.Tool.Path = "/no/such/nvidia-smi" }, 0, "not in PATH", false},
		{"version 1", "615.1", func(m *machine) { _ = os.Remove(filepath.Join(m.root, "sys/fs/cgroup/cgroup.controllers")) }, 0, "cgroup version 2", false},
		{"user", "615.1", func(*machine) {}, 1000, "only root", false},
		{"no version, no limits", "615.1", func(m *machine) {
			m.k.Tool.Path = filepath.Join(m.root, "smi")
			m.write("smi", "#!/bin/sh\necho what?\nexit 1\n")
			_ = os.Chmod(m.k.Tool.Path, 0o755)
		}, 0, "what?", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			m := newMachine(t, row.version)
			row.change(m)
			s := Detect(t.Context(), m.k.Tool, m.root, row.uid)
			if s.OK() != (row.why == "") || s.OK() != (s.Fix == "") || s.Kernel != row.kernel || !strings.Contains(s.Why, row.why) {
				t.Errorf("%+v, want %q", s, row.why)
			}
		})
	}
}

func TestGroupOf(t *testing.T) {
	m := newMachine(t, "615.1")
	for i, row := range []struct{ file, want string }{
		{"0::/docker/abc\n", "/sys/fs/cgroup/docker/abc"},
		{"0::/a:b/c.scope\n", "/sys/fs/cgroup/a:b/c.scope"},
		{"12:memory:/docker/abc\n0::/\n", ""}, // version 1 holds it
		{"0::/\n", ""},
		{"0::/../other\n", ""}, // outside this namespace
		{"3:cpu:/docker/abc\n", ""},
		{"", ""},
	} {
		m.write(fmt.Sprintf("proc/%d/cgroup", 100+i), row.file)
		if got, err := GroupOf(m.root, 100+i); got != row.want || (err == nil) != (row.want != "") {
			t.Errorf("%q: %q, %v", row.file, got, err)
		}
	}
	if _, err := GroupOf(m.root, 99); !os.IsNotExist(err) {
		t.Errorf("no such process: %v", err)
	}
}

func TestKeeper(t *testing.T) {
	m := newMachine(t, "615.1")
	m.process(7, "/carma/a")
	two := map[string]Limit{"GPU-a": {Soft: 3 * mib, Hard: 4 * mib}, "GPU-b": {Soft: 5 * mib, Hard: 5 * mib}}
	for range 2 { // it may be repeated
		if err := m.k.Limit(t.Context(), "a", 7, two); err != nil {
			t.Fatal(err)
		}
	}
	m.guaranteed("GPU-a", 3)
	m.guaranteed("GPU-b", 5)
	if l, err := m.k.Read(t.Context(), "a", "GPU-b"); err != nil || l != two["GPU-b"] {
		t.Errorf("read back: %+v, %v", l, err)
	}
	if leaked := m.k.Sweep(); leaked != nil {
		t.Errorf("swept: %v", leaked)
	}
	for range 2 {
		if err := m.k.Clear(t.Context(), "a"); err != nil {
			t.Error(err)
		}
	}
	m.guaranteed("GPU-a", 0)
	m.guaranteed("GPU-b", 0)
	calls, err := m.smi.Calls()
	want := []string{"set GPU-a a 3 4", "set GPU-b a 5 5", "set GPU-a a 3 4", "set GPU-b a 5 5"}
	if err != nil || len(calls) != 6 || !slices.Equal(calls[:4], want) {
		t.Errorf("calls %q, %v", calls, err)
	}
}

// TestKeeperGone: a control group that was removed before its limit was cleared is reported
// once, unless nothing can be left of the limit.
func TestKeeperGone(t *testing.T) {
	for _, row := range []struct {
		name   string
		soft   int64
		boot   string
		leaked bool
	}{
		{"guaranteed", 3 * mib, "boot-1", true},
		{"nothing guaranteed", 0, "boot-1", false},
		{"machine restarted", 3 * mib, "boot-2", false},
	} {
		for name, end := range map[string]func(*Keeper) error{
			"clear": func(k *Keeper) error { return k.Clear(t.Context(), "a") },
			"sweep": func(k *Keeper) error {
				for _, err := range k.Sweep() {
					return err
				}
				return nil
			},
		} {
			m := newMachine(t, "615.1")
			dir := m.process(7, "/carma/a")
			if err := m.k.Limit(t.Context(), "a", 7, map[string]Limit{"GPU-a": {row.soft, 4 * mib}}); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(dir); err != nil {
				t.Fatal(err)
			}
			m.write("proc/sys/kernel/random/boot_id", row.boot+"\n")
			if err := end(m.k); (err != nil) != row.leaked {
				t.Errorf("%s, %s: %v", row.name, name, err)
			}
			if files, err := os.ReadDir(m.k.Dir); err != nil || len(files) != 0 {
				t.Errorf("%s, %s: left %v, %v", row.name, name, files, err)
			}
		}
	}
}

// TestKeeperBroken: a refusal of the tool is an error. The container's note is kept, because
// some limits may be set.
func TestKeeperBroken(t *testing.T) {
	m := newMachine(t, "615.1")
	m.process(7, "/carma/a")
	if err := m.smi.Break(true); err != nil {
		t.Fatal(err)
	}
	err := m.k.Limit(t.Context(), "a", 7, map[string]Limit{"GPU-a": {Hard: mib}})
	if err == nil || !strings.Contains(err.Error(), "Unknown Error") {
		t.Errorf("limit: %v", err)
	}
	if err := m.k.Clear(t.Context(), "a"); err == nil {
		t.Error("released by a tool that refuses")
	}
	if err := os.WriteFile(filepath.Join(m.k.Dir, "b.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if leaked := m.k.Sweep(); len(leaked) != 1 {
		t.Errorf("swept %v", leaked)
	}
	if files, err := os.ReadDir(m.k.Dir); err != nil || len(files) != 0 {
		t.Errorf("left %v, %v", files, err)
	}
}
