package runner

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/gpu"
	"carma/runner/gpu/cgroup"
	"carma/runner/meminfo"
)

// hostMemory reads the host memory use of the tasks' containers from their control groups,
// of version 1 or 2. It asks no engine.
type hostMemory struct {
	root string // where /proc and /sys are found

	mu     sync.Mutex
	of     map[gpu.AttemptKey]*hostUse
	suites map[string]map[string]*hostUse // use of helpers, by suite and container
	looked time.Time                      // when control groups were last searched
	told   units.Bytes
}

// hostUse is the host memory state of one container.
type hostUse struct {
	names []string // names of the container in control groups
	group string   // its cgroup folder, or "" if not found yet
	told  units.Bytes
	peak  units.Bytes
}

const (
	// hostStep is the smallest change of a task's host memory that is reported. Smaller
	// changes would only fill the journal.
	hostStep = 16 * units.MiB
	// groupsEvery is the shortest time between two searches of /proc.
	groupsEvery = time.Second
)

func newHostMemory(root string) *hostMemory {
	return &hostMemory{root: root, of: map[gpu.AttemptKey]*hostUse{}, suites: map[string]map[string]*hostUse{}}
}

// follow reads the memory of an attempt's container until forget or stop is called. names
// are the container's ID and name in the engine.
func (h *hostMemory) follow(key gpu.AttemptKey, names ...string) (stop func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.of[key] == nil {
		h.of[key] = &hostUse{names: names}
	}
	h.looked = time.Time{}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if u := h.of[key]; u != nil {
			u.names, u.group, u.told = nil, "", 0 // the peak is kept
		}
	}
}

// forget returns the highest use seen of an attempt, and drops it.
func (h *hostMemory) forget(key gpu.AttemptKey) (peak units.Bytes) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if u := h.of[key]; u != nil {
		peak = u.peak
		delete(h.of, key)
	}
	return peak
}

// sample reads the containers' use and the available memory.
func (h *hostMemory) sample() model.HostSample {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.looked) >= groupsEvery {
		h.look()
	}
	available, total := meminfo.Read(h.root)
	h.told = steady(h.told, available, max(hostStep, total/256))
	out := model.HostSample{Available: h.told}
	for key, u := range h.of {
		used, ok := groupMemory(u.group)
		if !ok {
			u.group = "" // the container has ended, or the path belongs to another one
			continue
		}
		u.peak = max(u.peak, used)
		u.told = steady(u.told, used, hostStep)
		if u.told > 0 {
			out.Tasks = append(out.Tasks, model.HostUse{Task: key.Task, Used: u.told})
		}
	}
	out.Helpers = h.helpers()
	slices.SortFunc(out.Tasks, func(a, b model.HostUse) int { return int(a.Task - b.Task) })
	return out
}

// now returns the current host memory use of an attempt's container. ok is false if the
// use is unknown.
func (h *hostMemory) now(key gpu.AttemptKey) (used units.Bytes, ok bool) {
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
func steady(before, now, step units.Bytes) units.Bytes {
	if before > 0 && now > before-step && now < before+step {
		return before
	}
	return now / step * step
}

// look finds the control groups of the containers that have none yet, by their
// processes.
func (h *hostMemory) look() {
	wanted := map[string]*hostUse{}
	want := func(u *hostUse) {
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

// hostSample returns the machine's part of a sample, or nil if nothing is allocated.
func (r *Runner) hostSample() []model.HostSample {
	if _, books := r.live().Bounds.host(r.opt.SetSpeed != nil); !books {
		return nil
	}
	return []model.HostSample{r.hostMem.sample()}
}

func (r *Runner) hostsFound(now units.Instant) model.HostsFound {
	info, books := r.live().Bounds.host(r.opt.SetSpeed != nil)
	return hostsFound(now, info, books)
}

func hostsFound(now units.Instant, info model.HostInfo, books bool) model.HostsFound {
	ev := model.HostsFound{At: now}
	if books {
		ev.Hosts = []model.HostInfo{info}
	}
	return ev
}

// hostView returns the API form of the machine's memory and processors, or nil if nothing
// is allocated.
func (r *Runner) hostView(ctx context.Context) (*api.Host, error) {
	var pages []model.Host
	err := r.loop.Look(ctx, func(s *mapper.State) { pages = s.Hosts() })
	i := slices.IndexFunc(pages, func(h model.Host) bool { return h.Known })
	if err != nil || i < 0 {
		return nil, err
	}
	h := pages[i]
	out := &api.Host{
		Total: int64(h.Total), Memory: int64(h.Memory), Booked: int64(h.Booked), Available: int64(h.Available),
		CPUs: processors(h.CPUs), CPUsBooked: processors(h.CPUsBooked), Tasks: []api.HostMember{},
	}
	owners := r.helpers.Owners()
	for _, o := range h.Helpers {
		_, name, _ := strings.Cut(o.Suite, "/")
		out.Helpers = append(out.Helpers, api.HostHelpers{Suite: name, User: owners[o.Suite].Name, Memory: int64(o.Memory), Used: int64(o.Used), CPUs: processors(o.CPUs)})
	}
	for _, p := range h.Residents {
		name := ""
		if rec, _ := r.records.Get(p.Task); rec != nil {
			name = rec.Name
		}
		out.Used += int64(p.Used)
		out.Away += int64(p.SuspendedMemory)
		out.Tasks = append(out.Tasks, api.HostMember{Task: int64(p.Task), Name: name, Memory: int64(p.Memory), Away: int64(p.SuspendedMemory), Used: int64(p.Used), CPUs: processors(p.CPUs)})
	}
	return out, nil
}

// processors converts thousandths to a number of processors.
func processors(milli int64) float64 { return float64(milli) / 1000 }

// shareView returns the API form of the host resources allocated to an attempt.
func shareView(a *model.Attempt) api.HostShare {
	return api.HostShare{
		Memory: int64(a.Host.Memory), Limit: int64(a.Host.Limit), CPUs: processors(a.Host.CPUs), Weight: processors(a.Host.Weight), Peak: int64(a.HostPeak),
	}
}
