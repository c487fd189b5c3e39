package machine

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carma/containers"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/gpu"
	"carma/runner/helpers"
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
		h := NewMemory(root)
		h.FollowHelper("1000/lab", "carma-x-lab.db.1", id)
		if got := h.Sample(); !slices.Equal(got.Helpers, []model.HelpersUse{{Suite: "1000/lab", Used: 96 * units.MiB}}) {
			t.Errorf("%s: a helper uses %+v", c.name, got.Helpers)
		}
		h.ForgetHelpers("1000/lab")
		if got := h.Sample(); len(got.Helpers) > 0 {
			t.Errorf("%s: a helper that is gone uses %+v", c.name, got.Helpers)
		}
		key := gpu.AttemptKey{Task: 7, Attempt: 1}
		stop := h.Follow(key, id, "carma-x-7-1")
		want := model.HostSample{Available: 512 * units.MiB, Tasks: []model.HostUse{{Task: 7, Used: 96 * units.MiB}}}
		if got := h.Sample(); got.Available != want.Available || !slices.Equal(got.Tasks, want.Tasks) {
			t.Errorf("%s: %+v, want %+v", c.name, got, want)
		}
		write("sys/fs/cgroup/"+c.folder+"/"+c.usage, "213909504\n") // 10 MiB more is too little to report
		if got := h.Sample(); !slices.Equal(got.Tasks, want.Tasks) {
			t.Errorf("%s: after 10 MiB more %+v", c.name, got)
		}
		if used, ok := h.Now(key); !ok || used != 108*units.MiB {
			t.Errorf("%s: at this moment %s, %v", c.name, used, ok)
		}
		stop()
		if used, ok := h.Now(key); ok {
			t.Errorf("%s: after its end %s at this moment", c.name, used)
		}
		if got := h.Sample(); len(got.Tasks) > 0 {
			t.Errorf("%s: after its end %+v", c.name, got)
		}
		if peak := h.Forget(key); peak != 108*units.MiB {
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
		b, err := c.set.On(m)
		if err != nil {
			t.Fatal(err)
		}
		if got, books := b.Host(c.simulated); got != c.want || books != (c.want != model.HostInfo{}) {
			t.Errorf("%s: %+v, %v", c.name, got, books)
		}
	}
	if _, err := (Bounds{All: Share{HostMem: 200 * units.GiB}}).On(m); err == nil || !strings.HasPrefix(err.Error(), "all-host-mem: more than 100.0 GiB") {
		t.Errorf("all-host-mem above the machine: %v", err)
	}
}

// TestHelperShares: the limits and the allocation of a helper, with settings and without.
func TestHelperShares(t *testing.T) {
	m := Share{HostMem: 80 * units.GiB, CPUs: 16, Pids: 1000}
	for name, c := range map[string]struct {
		set    HelperBounds
		ask    api.Submit
		limit  units.Bytes
		cpus   float64
		booked helpers.Share
	}{
		"nothing said":  {HelperBounds{}, api.Submit{}, 9 * units.GiB, 4, helpers.Share{HostMem: int64(9 * units.GiB / 8)}},
		"settings":      {HelperBounds{HostMem: 2 * units.GiB, Reserve: units.GiB, CPUs: 1}, api.Submit{}, 2 * units.GiB, 1, helpers.Share{HostMem: 1 << 30}},
		"limits":        {HelperBounds{}, api.Submit{HostMem: 3 << 30, CPUs: 2}, 3 * units.GiB, 2, helpers.Share{HostMem: 3 << 30, CPUs: 2}},
		"reservations":  {HelperBounds{}, api.Submit{HostMem: 3 << 30, HostReserve: 1 << 30, CPUs: 2, CPUsReserve: 0.5}, 3 * units.GiB, 2, helpers.Share{HostMem: 1 << 30, CPUs: 0.5}},
		"reserves more": {HelperBounds{}, api.Submit{HostReserve: 20 << 30}, 20 * units.GiB, 4, helpers.Share{HostMem: 20 << 30}},
	} {
		b, err := Bounds{Helper: c.set}.On(m)
		if err != nil {
			t.Fatal(err)
		}
		var spec containers.Spec
		b.BoundHelper(&spec, c.ask)
		if units.Bytes(spec.Memory) != c.limit || spec.CPUs != c.cpus || b.Reserved(&c.ask) != c.booked {
			t.Errorf("%s: limits %s and %g, booked %+v", name, units.Bytes(spec.Memory), spec.CPUs, b.Reserved(&c.ask))
		}
	}
}
