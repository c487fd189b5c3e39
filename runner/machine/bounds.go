package machine

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"

	"carma/containers"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/request"

	"golang.org/x/sys/unix"
)

// Share is the part of the machine that one task may use.
type Share struct {
	HostMem units.Bytes // memory, /dev/shm included
	CPUs    float64     // processors; 0.5 is half of one
	Pids    int         // processes and threads
	ShmSize units.Bytes // of /dev/shm
}

// Bounds are the shares of tasks. [Bounds.On] fills in values of 0.
type Bounds struct {
	Default Share // for a task that requests none
	Most    Share // the largest that a task may request
	// All is the memory and the processors that all tasks together may allocate. On a
	// simulated server 0 means that nothing is allocated.
	All Share
	// Helper is for helpers of suites.
	Helper HelperBounds
	// Elsewhere is set if tasks run on the machines of a cluster, which accounts their
	// memory and processors. Nothing of this machine is allocated, and only a task's own
	// request limits it.
	Elsewhere bool

	unset bool        // All was not set
	ask   units.Bytes // Default.HostMem as it was set
	total units.Bytes // the machine's memory
}

// Size returns the size of this machine. HostMem is 0 if the size of the memory is
// unknown.
func Size() Share {
	m := Share{CPUs: float64(runtime.NumCPU()), Pids: 1 << 15}
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) == nil {
		m.HostMem = units.Bytes(info.Totalram * uint64(info.Unit))
	}
	for i, file := range []string{"/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"} {
		b, _ := os.ReadFile(file)
		if n, err := strconv.Atoi(strings.TrimSpace(string(b))); err == nil && n > 0 && (i == 0 || n < m.Pids) {
			m.Pids = n
		}
	}
	return m
}

// On fills in bounds for a machine, and refuses bounds above its size. Without
// a value a task may ask for nine tenths of the memory, so that one task cannot
// take all of it, for all processors, for half of the processes, and for as
// much of /dev/shm as of memory.
func (b Bounds) On(m Share) (Bounds, error) {
	if b.Elsewhere { // the resources of the cluster's machines are not known here
		m.HostMem, m.CPUs = units.TiB<<10, 1<<20
	}
	ninth := m.HostMem / 10 * 9
	b.Most.HostMem = cmp.Or(b.Most.HostMem, ninth)
	b.unset = b.All.HostMem == 0 && b.All.CPUs == 0
	b.ask = b.Default.HostMem
	b.All.HostMem, b.All.CPUs = cmp.Or(b.All.HostMem, ninth), cmp.Or(b.All.CPUs, m.CPUs)
	b.total = m.HostMem
	b.Most.CPUs = cmp.Or(b.Most.CPUs, m.CPUs)
	b.Most.Pids = cmp.Or(b.Most.Pids, m.Pids/2)
	b.Most.ShmSize = cmp.Or(b.Most.ShmSize, b.Most.HostMem)
	b.Default.HostMem = cmp.Or(b.Default.HostMem, b.Most.HostMem)
	b.Default.Pids = cmp.Or(b.Default.Pids, b.Most.Pids)
	over := func(key string, have, most float64, text string) error {
		if have <= most {
			return nil
		}
		return fmt.Errorf("%s: more than %s; write at most that", key, text)
	}
	return b, cmp.Or(
		over("max-host-mem", float64(b.Most.HostMem), float64(m.HostMem), m.HostMem.String()+", the machine's memory"),
		over("all-host-mem", float64(b.All.HostMem), float64(m.HostMem), m.HostMem.String()+", the machine's memory"),
		over("all-cpus", b.All.CPUs, m.CPUs, fmt.Sprintf("%g, the machine's processors", m.CPUs)),
		over("max-cpus", b.Most.CPUs, m.CPUs, fmt.Sprintf("%g, the machine's processors", m.CPUs)),
		over("max-pids", float64(b.Most.Pids), float64(m.Pids), fmt.Sprintf("%d, the most the machine can have", m.Pids)),
		over("max-shm-size", float64(b.Most.ShmSize), float64(m.HostMem), m.HostMem.String()+", the machine's memory"),
		over("host-mem", float64(b.Default.HostMem), float64(b.Most.HostMem), b.Most.HostMem.String()+", which is max-host-mem"),
		over("cpus", b.Default.CPUs, b.Most.CPUs, fmt.Sprintf("%g, which is max-cpus", b.Most.CPUs)),
		over("pids", float64(b.Default.Pids), float64(b.Most.Pids), fmt.Sprintf("%d, which is max-pids", b.Most.Pids)),
		over("shm-size", float64(b.Default.ShmSize), float64(min(b.Most.ShmSize, b.Default.HostMem)), min(b.Most.ShmSize, b.Default.HostMem).String()+", which is max-shm-size or host-mem"),
	)
}

// oom_score_adj of tasks with and without a host memory request. When the machine runs out
// of memory, the kernel kills tasks before the machine's own programs, and tasks without a
// request first.
const (
	oomAsked   = 300
	oomUnasked = 700
)

// Host returns the host resources that tasks may allocate, or false if nothing is
// allocated: GPUs are simulated and nobody has set an amount.
func (b Bounds) Host(simulated bool) (model.HostInfo, bool) {
	if simulated && b.unset || b.total == 0 || b.Elsewhere {
		return model.HostInfo{}, false
	}
	return model.HostInfo{
		Total: b.total, Memory: b.All.HostMem, CPUs: Milli(b.All.CPUs), Most: min(b.Most.HostMem, b.All.HostMem), Limit: b.ask,
	}, true
}

// HostsFound returns the event that says what tasks may allocate.
func (b Bounds) HostsFound(now units.Instant, simulated bool) model.HostsFound {
	ev := model.HostsFound{At: now}
	if info, books := b.Host(simulated); books {
		ev.Hosts = []model.HostInfo{info}
	}
	return ev
}

// Milli converts a number of processors to thousandths.
func Milli(cpus float64) int64 { return int64(math.Round(cpus * 1000)) }

// Asked returns the host memory, reservation and processors that a submission requests,
// in the mapper's units.
func Asked(s *api.Submit) (memory, reserve units.Bytes, cpus int64) {
	return units.Bytes(s.HostMem), units.Bytes(s.HostReserve), Milli(cmp.Or(s.CPUsReserve, s.CPUs))
}

// leastHostMem is the least memory in which a container starts at all.
const leastHostMem = 16 * units.MiB

// Check refuses a share that a task cannot have. The error names the nearest
// possible one.
func (b Bounds) Check(s api.Submit) error {
	mem := cmp.Or(units.Bytes(s.HostMem), b.Default.HostMem)
	switch shm := min(b.Most.ShmSize, mem); {
	case s.HostMem < 0 || s.HostReserve < 0 || s.CPUs < 0 || s.CPUsReserve < 0 || s.Pids < 0 || s.ShmSize < 0:
		return request.Errorf(422, "--host-mem, --host-reserve, --cpus, --cpus-reserve, --pids and --shm-size cannot be below 0")
	case units.Bytes(s.HostMem) > b.Most.HostMem:
		return request.Errorf(422, "--host-mem %s: a task may have at most %s of this machine's memory", units.Bytes(s.HostMem), b.Most.HostMem)
	case s.HostMem > 0 && units.Bytes(s.HostMem) < leastHostMem:
		return request.Errorf(422, "--host-mem %s: no program starts in that; write at least %s", units.Bytes(s.HostMem), leastHostMem)
	case units.Bytes(s.HostReserve) > cmp.Or(units.Bytes(s.HostMem), b.Most.HostMem):
		return request.Errorf(422, "--host-reserve %s: more than the %s that it may use; write at most that", units.Bytes(s.HostReserve), cmp.Or(units.Bytes(s.HostMem), b.Most.HostMem))
	case s.CPUsReserve > cmp.Or(s.CPUs, b.Most.CPUs):
		return request.Errorf(422, "--cpus-reserve %g: more than the %g that it may use; write at most that", s.CPUsReserve, cmp.Or(s.CPUs, b.Most.CPUs))
	case s.CPUs > b.Most.CPUs:
		return request.Errorf(422, "--cpus %g: a task may have at most %g", s.CPUs, b.Most.CPUs)
	case s.CPUs > 0 && s.CPUs < 0.01:
		return request.Errorf(422, "--cpus %g: the least is 0.01", s.CPUs)
	case s.Pids > int64(b.Most.Pids):
		return request.Errorf(422, "--pids %d: a task may have at most %d processes and threads", s.Pids, b.Most.Pids)
	case units.Bytes(s.ShmSize) > shm:
		return request.Errorf(422, "--shm-size %s: at most %s is possible here; it counts as the task's memory (--host-mem)", units.Bytes(s.ShmSize), shm)
	}
	return nil
}

// shmElsewhere is the default size of /dev/shm on a machine of a cluster. /dev/shm takes
// no memory before it is filled.
const shmElsewhere = int64(8 * units.GiB)

// Bound sets the share of a task's container: as requested, else as allocated, else the
// default. Without a default /dev/shm may take half of the task's memory: data loaders and
// NCCL need more than the engines' 64 MiB, and its contents count as the task's memory
// anyway. It takes memory only as it is written.
func (b Bounds) Bound(spec *containers.Spec, s api.Submit, booked model.HostShare) {
	if b.Elsewhere {
		spec.Memory, spec.CPUs = s.HostMem, s.CPUs
		spec.ShmSize = cmp.Or(s.ShmSize, s.HostMem/2, shmElsewhere)
		return
	}
	spec.Memory = cmp.Or(s.HostMem, int64(booked.Limit), int64(b.Default.HostMem))
	spec.CPUWeight = booked.Weight
	spec.OOMScore = oomAsked
	if s.HostMem == 0 {
		spec.OOMScore = oomUnasked
	}
	spec.CPUs = cmp.Or(s.CPUs, b.Default.CPUs)
	spec.Pids = cmp.Or(s.Pids, int64(b.Default.Pids))
	spec.ShmSize = cmp.Or(s.ShmSize, min(int64(b.Default.ShmSize), spec.Memory), min(spec.Memory/2, int64(b.Most.ShmSize)))
}
