//go:build cgo

package nvml

import (
	"time"

	"carma/runner/gpu"

	lib "github.com/NVIDIA/go-nvml/pkg/nvml"
)

// times contains the shares of time in which kernels of a card's processes ran (NVML's
// per-process utilization).
type times struct {
	seen  uint64    // the driver's time stamp of the newest sample, in microseconds
	newer time.Time // time of that sample
	// of contains the shares, 0 to 1, of the processes that have had a sample. The driver
	// omits processes that ran nothing. It also omits clients of MPS, because their server
	// does their work. So only a process that has appeared before is idle while omitted.
	of map[uint32]float64
}

// stale is the time for which the last samples count while there are no newer ones,
// because the driver may make them less often than it is asked.
const stale = 2 * time.Second

// time sets the shares of time of a unit's processes, as far as the driver reports them.
// It does not report them for MIG instances and vGPUs.
func (s *Source) time(u *unit, list []process, out []gpu.Process, now time.Time) {
	if u.instance >= 0 || len(list) == 0 || !s.has("nvmlDeviceGetProcessUtilization") {
		u.times = times{}
		return
	}
	samples, ret := utilization(u.handle, u.times.seen)
	switch {
	case ret == lib.SUCCESS && u.times.enter(samples):
		u.times.newer = now
	case ret != lib.SUCCESS && ret != lib.ERROR_NOT_FOUND:
		u.times = times{}
		return
	case now.Sub(u.times.newer) > stale: // none of them has run
		for pid := range u.times.of {
			u.times.of[pid] = 0
		}
	}
	u.times.keep(list)
	for i, p := range list {
		out[i].Active, out[i].Timed = u.times.of[p.pid]
	}
}

// utilization requests the samples after a time stamp. It catches the panic of go-nvml if
// their number grows between its two calls.
func utilization(handle lib.Device, after uint64) (samples []lib.ProcessUtilizationSample, ret lib.Return) {
	defer func() {
		if recover() != nil {
			samples, ret = nil, lib.ERROR_NOT_FOUND
		}
	}()
	return handle.GetProcessUtilization(after)
}

// enter adds the samples newer than the last ones, as the mean of each process, and
// reports whether there are any. At first only the newest sample counts, because the
// others are old.
func (t *times) enter(samples []lib.ProcessUtilizationSample) bool {
	newest, after := t.seen, t.seen
	for _, s := range samples {
		newest = max(newest, s.TimeStamp)
	}
	if newest == after {
		return false
	}
	if after == 0 {
		after = newest - min(newest, uint64(stale.Microseconds()))
	}
	sum, n := map[uint32]float64{}, map[uint32]float64{}
	for _, s := range samples {
		if s.Pid > 0 && s.Pid < mostPID && s.TimeStamp > after && s.SmUtil <= 100 {
			sum[s.Pid] += float64(s.SmUtil) / 100
			n[s.Pid]++
		}
	}
	of := map[uint32]float64{}
	for pid := range t.of {
		of[pid] = 0
	}
	for pid, v := range sum {
		of[pid] = v / n[pid]
	}
	t.seen, t.of = newest, of
	return true
}

// keep removes the processes that have ended.
func (t *times) keep(list []process) {
	there := map[uint32]bool{}
	for _, p := range list {
		there[p.pid] = true
	}
	for pid := range t.of {
		if !there[pid] {
			delete(t.of, pid)
		}
	}
}
