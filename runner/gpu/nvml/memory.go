//go:build cgo

package nvml

import (
	"carma/internal/units"
	"carma/runner/gpu"
	"carma/runner/meminfo"

	lib "github.com/NVIDIA/go-nvml/pkg/nvml"
)

// memory is a reading of a unit's memory, in bytes.
type memory struct {
	total, used uint64
	// net is set if total and used do not include the driver's own memory.
	net bool
	// machine is set if it is the machine's memory.
	machine bool
}

// memory reads a unit's memory. From driver 510 on, the second version of the call
// reports the driver's own memory. Nobody can allocate that memory, so it is not part of
// the capacity.
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
	if ret == lib.ERROR_NOT_SUPPORTED && u.instance < 0 {
		return s.machineMemory(ret)
	}
	return memory{total: m.Total, used: m.Used}, ret
}

// machineMemory returns the memory of a card without memory of its own, which reports
// none (GB10 in a DGX Spark): its programs use the machine's memory. All memory that is
// not available there counts as used, by any process.
func (s *Source) machineMemory(ret lib.Return) (memory, lib.Return) {
	free, total := meminfo.Read(s.opt.Root)
	if total <= 0 || free > total {
		return memory{}, ret
	}
	return memory{total: uint64(total), used: uint64(total - free), net: true, machine: true}, lib.SUCCESS
}

const (
	// unknown is the library's value for unknown memory.
	unknown = ^uint64(0)
	// mostProcesses is the longest plausible list.
	mostProcesses = 4096
	// mostPID is the highest PID in Linux (PID_MAX_LIMIT).
	mostPID = 1 << 22
)

// listed returns the memory of every process on a unit, or unknown if the library does not
// know it. A process may be in several lists (compute, graphics, MPS), each with all its
// memory. ok is false if nothing could be read; clients is set if the list of MPS clients
// could be read.
func (s *Source) listed(u *unit) (out []process, ok, clients bool) {
	at := map[uint32]int{}
	for _, list := range []struct {
		read   func() ([]lib.ProcessInfo, lib.Return)
		symbol []string
		client bool
	}{
		{u.handle.GetComputeRunningProcesses, []string{"nvmlDeviceGetComputeRunningProcesses"}, false},
		{u.handle.GetGraphicsRunningProcesses, []string{"nvmlDeviceGetGraphicsRunningProcesses"}, false},
		{u.handle.GetMPSComputeRunningProcesses, []string{"nvmlDeviceGetMPSComputeRunningProcesses", "nvmlDeviceGetMPSComputeRunningProcesses_v2", "nvmlDeviceGetMPSComputeRunningProcesses_v3"}, true},
	} {
		if !s.hasAny(list.symbol) {
			continue
		}
		infos, ret := list.read()
		if ret != lib.SUCCESS || len(infos) > mostProcesses {
			continue
		}
		ok, clients = true, list.client
		for _, info := range infos {
			i, known := at[info.Pid]
			if !known || info.Pid == 0 {
				at[info.Pid] = len(out)
				out = append(out, process{pid: info.Pid, used: info.UsedGpuMemory, client: list.client})
				continue
			}
			out[i].client = out[i].client || list.client
			if out[i].used == unknown || info.UsedGpuMemory != unknown && info.UsedGpuMemory > out[i].used {
				out[i].used = info.UsedGpuMemory
			}
		}
	}
	return out, ok, clients
}

type process struct {
	pid    uint32
	used   uint64
	client bool // client of MPS
}

func (s *Source) hasAny(symbols []string) bool {
	for _, name := range symbols {
		if s.has(name) {
			return true
		}
	}
	return false
}

// processes returns the processes of a unit with their memory. A figure above all memory in
// use is impossible, and counts as unknown. Memory in use that no process accounts for is
// divided evenly among the processes with unknown memory; a single one gets all of it.
// guessed is the number of such figures.
func (s *Source) processes(list []process, used units.Bytes) (out []gpu.Process, guessed int) {
	var blank []int
	rest := used
	for _, p := range list {
		q := gpu.Process{Client: p.client}
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
