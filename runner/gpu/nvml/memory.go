//go:build cgo

package nvml

import (
	"carma/mapper/units"
	"carma/runner/gpu"

	lib "github.com/NVIDIA/go-nvml/pkg/nvml"
)

// memory is what a unit says of its memory, in bytes.
type memory struct {
	total, used uint64
	// net: what the driver keeps for itself is in neither.
	net bool
}

// memory reads a unit's memory. The second version of the call, from driver 510
// on, tells apart what the driver reserves; nobody can allocate that, so it is
// no part of the capacity.
func (s *Source) memory(u *unit) (memory, lib.Return) {
	if s.has("nvmlDeviceGetMemoryInfo_v2") {
		m, ret := u.handle.GetMemoryInfo_v2()
		switch ret {
		case lib.SUCCESS:
			return memory{total: m.Total - min(m.Reserved, m.Total), used: m.Used, net: true}, ret
		case lib.ERROR_NOT_SUPPORTED, lib.ERROR_FUNCTION_NOT_FOUND, lib.ERROR_ARGUMENT_VERSION_MISMATCH:
		default:
			return memory{}, ret
		}
	}
	m, ret := u.handle.GetMemoryInfo()
	return memory{total: m.Total, used: m.Used}, ret
}

const (
	// unknown is the library's figure for memory that it cannot tell.
	unknown = ^uint64(0)
	// mostProcesses bounds a list that is believed.
	mostProcesses = 4096
	// mostPID is the highest number that Linux gives a process (PID_MAX_LIMIT).
	mostPID = 1 << 22
)

// listed returns the memory of every process on a unit; unknown where the
// library cannot tell. A process may be in several lists (compute, graphics,
// MPS), each with all its memory. ok is false when nothing could be read.
func (s *Source) listed(u *unit) (out []process, ok bool) {
	at := map[uint32]int{}
	for _, list := range []struct {
		read   func() ([]lib.ProcessInfo, lib.Return)
		symbol []string
	}{
		{u.handle.GetComputeRunningProcesses, []string{"nvmlDeviceGetComputeRunningProcesses"}},
		{u.handle.GetGraphicsRunningProcesses, []string{"nvmlDeviceGetGraphicsRunningProcesses"}},
		{u.handle.GetMPSComputeRunningProcesses, []string{"nvmlDeviceGetMPSComputeRunningProcesses", "nvmlDeviceGetMPSComputeRunningProcesses_v2", "nvmlDeviceGetMPSComputeRunningProcesses_v3"}},
	} {
		if !s.hasAny(list.symbol) {
			continue
		}
		infos, ret := list.read()
		if ret != lib.SUCCESS || len(infos) > mostProcesses {
			continue
		}
		ok = true
		for _, info := range infos {
			i, known := at[info.Pid]
			if !known || info.Pid == 0 {
				at[info.Pid] = len(out)
				out = append(out, process{pid: info.Pid, used: info.UsedGpuMemory})
				continue
			}
			if out[i].used == unknown || info.UsedGpuMemory != unknown && info.UsedGpuMemory > out[i].used {
				out[i].used = info.UsedGpuMemory
			}
		}
	}
	return out, ok
}

type process struct {
	pid  uint32
	used uint64
}

func (s *Source) hasAny(symbols []string) bool {
	for _, name := range symbols {
		if s.has(name) {
			return true
		}
	}
	return false
}

// processes turns the list into what the monitor is told. A figure that cannot
// be is unknown: it is above all that is in use on the GPU. What is in use and
// accounted for by nobody is divided evenly among the processes whose memory is
// unknown; for one of them alone that is what it has. guessed is how many have
// such a figure.
func (s *Source) processes(list []process, used units.Bytes) (out []gpu.Process, guessed int) {
	var blank []int
	rest := used
	for _, p := range list {
		q := gpu.Process{}
		if p.pid < mostPID {
			q.PID = int(p.pid)
		}
		if q.PID > 0 {
			if task, attempt, ok := s.owner(q.PID); ok {
				q.Task, q.Attempt = task, attempt
			}
		}
		if p.used > uint64(used) {
			blank = append(blank, len(out))
		} else {
			q.Used = units.Bytes(p.used)
			rest -= q.Used
		}
		out = append(out, q)
	}
	for _, i := range blank {
		out[i].Used = max(0, rest) / units.Bytes(len(blank))
	}
	return out, len(blank)
}
