package runner

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/gpu"
)

// TestHostMemoryOfGroups: containers' use is read from control groups of both versions, without
// the page cache; including groups that a container has made below its own.
func TestHostMemoryOfGroups(t *testing.T) {
	id := strings.Repeat("ab", 32)
	for _, c := range []struct{ name, cgroup, folder, usage, stat string }{
		{"version 1", "11:cpu,cpuacct:/docker/" + id + "\n4:memory:/docker/" + id + "/inner\n", "memory/docker/" + id, "memory.usage_in_bytes", "cache 999\ninactive_file 999\ntotal_inactive_file 67108864\ntotal_active_file 33554432\n"},
		{"version 2", "0::/system.slice/docker-" + id + ".scope\n", "system.slice/docker-" + id + ".scope", "memory.current", "anon 999\ninactive_file 67108864\nactive_file 33554432\n"},
	} {
		root := t.TempDir()
		write := func(path, text string) {
			t.Helper()
			path = filepath.Join(root, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		write("proc/meminfo", "MemTotal: 1048576 kB\nMemFree: 1 kB\nMemAvailable: 524288 kB\n")
		write("proc/77/cgroup", c.cgroup)
		write("sys/fs/cgroup/"+c.folder+"/"+c.usage, "203423744\n") // 194 MiB
		write("sys/fs/cgroup/"+c.folder+"/memory.stat", c.stat)
		h := newHostMemory(root)
		h.followHelper("1000/lab", "carma-x-lab.db.1", id)
		if got := h.sample(); !slices.Equal(got.Helpers, []model.HelpersUse{{Suite: "1000/lab", Used: 96 * units.MiB}}) {
			t.Errorf("%s: a helper uses %+v", c.name, got.Helpers)
		}
		h.forgetHelpers("1000/lab")
		if got := h.sample(); len(got.Helpers) > 0 {
			t.Errorf("%s: a helper that is gone uses %+v", c.name, got.Helpers)
		}
		key := gpu.AttemptKey{Task: 7, Attempt: 1}
		stop := h.follow(key, id, "carma-x-7-1")
		want := model.HostSample{Available: 512 * units.MiB, Tasks: []model.HostUse{{Task: 7, Used: 96 * units.MiB}}}
		if got := h.sample(); got.Available != want.Available || !slices.Equal(got.Tasks, want.Tasks) {
			t.Errorf("%s: %+v, want %+v", c.name, got, want)
		}
		write("sys/fs/cgroup/"+c.folder+"/"+c.usage, "213909504\n") // 10 MiB more is too little to report
		if got := h.sample(); !slices.Equal(got.Tasks, want.Tasks) {
			t.Errorf("%s: after 10 MiB more %+v", c.name, got)
		}
		if used, ok := h.now(key); !ok || used != 108*units.MiB {
			t.Errorf("%s: at this moment %s, %v", c.name, used, ok)
		}
		stop()
		if used, ok := h.now(key); ok {
			t.Errorf("%s: after its end %s at this moment", c.name, used)
		}
		if got := h.sample(); len(got.Tasks) > 0 {
			t.Errorf("%s: after its end %+v", c.name, got)
		}
		if peak := h.forget(key); peak != 108*units.MiB {
			t.Errorf("%s: the peak is %s", c.name, peak)
		}
	}
}

// TestHostOfBounds: nothing is allocated on a simulated server unless an amount is set; on a
// real one tasks get nine tenths of the memory.
func TestHostOfBounds(t *testing.T) {
	m := Share{HostMem: 100 * units.GiB, CPUs: 8, Pids: 1000}
	for _, c := range []struct {
		name      string
		set       Bounds
		simulated bool
		want      model.HostInfo
	}{
		{"real", Bounds{}, false, model.HostInfo{Total: 100 * units.GiB, Memory: 90 * units.GiB, CPUs: 8000, Most: 90 * units.GiB}},
		{"simulated", Bounds{}, true, model.HostInfo{}},
		{"simulated, set", Bounds{All: Share{HostMem: units.GiB}}, true, model.HostInfo{Total: 100 * units.GiB, Memory: units.GiB, CPUs: 8000, Most: units.GiB}},
		{"a limit", Bounds{Default: Share{HostMem: 4 * units.GiB}, Most: Share{HostMem: 20 * units.GiB}}, false,
			model.HostInfo{Total: 100 * units.GiB, Memory: 90 * units.GiB, CPUs: 8000, Most: 20 * units.GiB, Limit: 4 * units.GiB}},
	} {
		b, err := c.set.on(m)
		if err != nil {
			t.Fatal(err)
		}
		if got, books := b.host(c.simulated); got != c.want || books != (c.want != model.HostInfo{}) {
			t.Errorf("%s: %+v, %v", c.name, got, books)
		}
	}
	if _, err := (Bounds{All: Share{HostMem: 200 * units.GiB}}).on(m); err == nil || !strings.HasPrefix(err.Error(), "all-host-mem: more than 100.0 GiB") {
		t.Errorf("all-host-mem above the machine: %v", err)
	}
}
