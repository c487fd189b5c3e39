package runner

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	"carma/mapper/units"

	"carma/containers"
	"carma/runner/api"

	"golang.org/x/sys/unix"
)

// Share is how much of the machine one task may use.
type Share struct {
	HostMem units.Bytes // memory, with what is in /dev/shm
	CPUs    float64     // processors, in whole and parts
	Pids    int         // processes and threads
	ShmSize units.Bytes // of /dev/shm
}

// Bounds are the shares of tasks. 0 is a value that [Bounds.on] fills in.
type Bounds struct {
	Default Share // of a task that does not ask
	Most    Share // that one may ask for
}

// machine is what there is to share.
func machine() Share {
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

// on completes bounds for a machine, and refuses those above what it has. What
// is left open: nine tenths of the memory, so that one task cannot take all of
// it, all processors, half of the processes; for /dev/shm the task's memory.
func (b Bounds) on(m Share) (Bounds, error) {
	ninth := m.HostMem / 10 * 9
	b.Most.HostMem = cmp.Or(b.Most.HostMem, ninth)
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
	return b, firstError(
		over("max-host-mem", float64(b.Most.HostMem), float64(m.HostMem), m.HostMem.String()+", the machine's memory"),
		over("max-cpus", b.Most.CPUs, m.CPUs, fmt.Sprintf("%g, the machine's processors", m.CPUs)),
		over("max-pids", float64(b.Most.Pids), float64(m.Pids), fmt.Sprintf("%d, the most the machine can have", m.Pids)),
		over("max-shm-size", float64(b.Most.ShmSize), float64(m.HostMem), m.HostMem.String()+", the machine's memory"),
		over("host-mem", float64(b.Default.HostMem), float64(b.Most.HostMem), b.Most.HostMem.String()+", which is max-host-mem"),
		over("cpus", b.Default.CPUs, b.Most.CPUs, fmt.Sprintf("%g, which is max-cpus", b.Most.CPUs)),
		over("pids", float64(b.Default.Pids), float64(b.Most.Pids), fmt.Sprintf("%d, which is max-pids", b.Most.Pids)),
		over("shm-size", float64(b.Default.ShmSize), float64(min(b.Most.ShmSize, b.Default.HostMem)), min(b.Most.ShmSize, b.Default.HostMem).String()+", which is max-shm-size or host-mem"),
	)
}

// least is what a container needs to start at all.
const leastHostMem = 16 * units.MiB

// check refuses a share that a task cannot have, with the nearest it can.
func (b Bounds) check(s api.Submit) error {
	mem := cmp.Or(units.Bytes(s.HostMem), b.Default.HostMem)
	switch shm := min(b.Most.ShmSize, mem); {
	case s.HostMem < 0 || s.CPUs < 0 || s.Pids < 0 || s.ShmSize < 0:
		return refusef(422, "--host-mem, --cpus, --pids and --shm-size cannot be below 0")
	case units.Bytes(s.HostMem) > b.Most.HostMem:
		return refusef(422, "--host-mem %s: a task may have at most %s of this machine's memory", units.Bytes(s.HostMem), b.Most.HostMem)
	case s.HostMem > 0 && units.Bytes(s.HostMem) < leastHostMem:
		return refusef(422, "--host-mem %s: no program starts in that; write at least %s", units.Bytes(s.HostMem), leastHostMem)
	case s.CPUs > b.Most.CPUs:
		return refusef(422, "--cpus %g: a task may have at most %g", s.CPUs, b.Most.CPUs)
	case s.CPUs > 0 && s.CPUs < 0.01:
		return refusef(422, "--cpus %g: the least is 0.01", s.CPUs)
	case s.Pids > int64(b.Most.Pids):
		return refusef(422, "--pids %d: a task may have at most %d processes and threads", s.Pids, b.Most.Pids)
	case units.Bytes(s.ShmSize) > shm:
		return refusef(422, "--shm-size %s: at most %s is possible here; it counts as the task's memory (--host-mem)", units.Bytes(s.ShmSize), shm)
	}
	return nil
}

// bound sets what a task's container may use of the machine.
func (b Bounds) bound(spec *containers.Spec, s api.Submit) {
	spec.Memory = cmp.Or(s.HostMem, int64(b.Default.HostMem))
	spec.CPUs = cmp.Or(s.CPUs, b.Default.CPUs)
	spec.Processes = cmp.Or(s.Pids, int64(b.Default.Pids))
	spec.ShmSize = cmp.Or(s.ShmSize, min(int64(b.Default.ShmSize), spec.Memory))
}
