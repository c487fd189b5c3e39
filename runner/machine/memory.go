package machine

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/gpu"
	"carma/runner/gpu/cgroup"
	"carma/runner/meminfo"
)

// Memory reads the host memory use of the tasks' containers from their control groups,
// of version 1 or 2. It asks no engine.
type Memory struct {
	root string // where /proc and /sys are

	mu       sync.Mutex
	of       map[gpu.AttemptKey]*use
	suites   map[string]map[string]*use // use of helpers, by suite and container
	looked   time.Time                  // when control groups were last searched
	reported units.Bytes
}

// use is the host memory state of one container.
type use struct {
	names    []string // names of the container in control groups
	group    string   // its cgroup folder, or "" if not found yet
	reported units.Bytes
	peak     units.Bytes
}

const (
	// step is the smallest change of a task's host memory that is reported. Smaller
	// changes would only fill the journal.
	step = 16 * units.MiB
	// searchEvery is the shortest time between two searches of /proc.
	searchEvery = time.Second
)

// NewMemory returns a reader of the containers' memory. /proc and /sys are found in root.
func NewMemory(root string) *Memory {
	return &Memory{root: root, of: map[gpu.AttemptKey]*use{}, suites: map[string]map[string]*use{}}
}

// Follow reads the memory of an attempt's container until Forget or stop is called. names
// are the container's ID and name in the engine.
func (h *Memory) Follow(key gpu.AttemptKey, names ...string) (stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of[key] == nil {
		h.of[key] = &use{names: names}
	}
	h.looked = time.Time{}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if u := h.of[key]; u != nil {
			u.names, u.group, u.reported = nil, "", 0 // the peak is kept
		}
	}
}

// Forget returns the highest use seen of an attempt, and drops it.
func (h *Memory) Forget(key gpu.AttemptKey) (peak units.Bytes) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if u := h.of[key]; u != nil {
		peak = u.peak
		delete(h.of, key)
	}
	return peak
}

// Sample reads the containers' use and the available memory.
func (h *Memory) Sample() model.HostSample {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.looked) >= searchEvery {
		h.look()
	}
	available, total := meminfo.Read(h.root)
	h.reported = steady(h.reported, available, max(step, total/256))
	out := model.HostSample{Available: h.reported}
	for key, u := range h.of {
		used, ok := groupMemory(u.group)
		if !ok {
			u.group = "" // the container has ended, or the path belongs to another one
			continue
		}
		u.peak = max(u.peak, used)
		u.reported = steady(u.reported, used, step)
		if u.reported > 0 {
			out.Tasks = append(out.Tasks, model.HostUse{Task: key.Task, Used: u.reported})
		}
	}
	out.Helpers = h.helpers()
	slices.SortFunc(out.Tasks, func(a, b model.HostUse) int { return int(a.Task - b.Task) })
	return out
}

// Now returns the current host memory use of an attempt's container. ok is false if the
// use is unknown.
func (h *Memory) Now(key gpu.AttemptKey) (used units.Bytes, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	u := h.of[key]
	if u == nil {
		return 0, false
	}
	if u.group == "" {
		h.look()
	}
	return groupMemory(u.group)
}

// steady returns now rounded down to steps, or before if the two differ by less than a
// step.
func steady(before, now, by units.Bytes) units.Bytes {
	if before > 0 && now > before-by && now < before+by {
		return before
	}
	return now / by * by
}

// look finds the control groups of the containers that have none yet, by their
// processes.
func (h *Memory) look() {
	wanted := map[string]*use{}
	want := func(u *use) {
		if u.group == "" {
			for _, name := range u.names {
				wanted[name] = u
			}
		}
	}
	for _, u := range h.of {
		want(u)
	}
	for _, all := range h.suites {
		for _, u := range all {
			want(u)
		}
	}
	if len(wanted) == 0 {
		return
	}
	h.looked = time.Now()
	all, err := os.ReadDir(filepath.Join(h.root, "proc"))
	if err != nil {
		return
	}
	for _, entry := range all {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		names, err := cgroup.Containers(h.root, pid)
		if err != nil {
			continue
		}
		for _, name := range names {
			if u := wanted[name]; u != nil && u.group == "" {
				u.group = cgroup.MemoryOf(h.root, pid, name)
			}
		}
	}
}

// groupMemory returns the memory that the processes of a control group use, without the
// page cache, which the kernel reclaims when others need it. Files in /dev/shm count.
func groupMemory(group string) (units.Bytes, bool) {
	if group == "" {
		return 0, false
	}
	used, ok := number(filepath.Join(group, "memory.usage_in_bytes"))
	prefix := "total_" // in version 1, these figures include the groups below
	if !ok {
		if used, ok = number(filepath.Join(group, "memory.current")); !ok {
			return 0, false
		}
		prefix = ""
	}
	b, err := os.ReadFile(filepath.Join(group, "memory.stat"))
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(b)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if key == prefix+"inactive_file" || key == prefix+"active_file" {
			if n, err := strconv.ParseInt(value, 10, 64); err == nil {
				used -= units.Bytes(n)
			}
		}
	}
	return max(0, used), true
}

func number(file string) (units.Bytes, bool) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return units.Bytes(n), err == nil
}

// FollowHelper reads the memory of a helper's container from now on. If the name was
// followed before, it belongs to a new container now.
func (h *Memory) FollowHelper(suite, container, id string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.suites[suite] == nil {
		h.suites[suite] = map[string]*use{}
	}
	h.suites[suite][container] = &use{names: []string{id, container}}
}

// ForgetHelpers ends the readings of a suite's helpers.
func (h *Memory) ForgetHelpers(suite string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.suites, suite)
}

// helpers reads the memory use of each suite's helpers. The caller holds mu.
func (h *Memory) helpers() (all []model.HelpersUse) {
	for _, suite := range slices.Sorted(maps.Keys(h.suites)) {
		var sum units.Bytes
		for _, u := range h.suites[suite] {
			used, ok := groupMemory(u.group)
			if !ok {
				u.group, u.reported = "", 0 // the container has ended, or was started again
				continue
			}
			u.reported = steady(u.reported, used, step)
			sum += u.reported
		}
		if sum > 0 {
			all = append(all, model.HelpersUse{Suite: suite, Used: sum})
		}
	}
	return all
}

// NearCPUs returns the processors at a NUMA node, in the kernel's format (0-15,32-47), or
// "" if they are unknown.
func (h *Memory) NearCPUs(node string) string {
	b, _ := os.ReadFile(filepath.Join(h.root, "sys/devices/system/node/node"+node, "cpulist"))
	return strings.TrimSpace(string(b))
}
