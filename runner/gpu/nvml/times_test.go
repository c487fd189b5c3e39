//go:build cgo

package nvml

import (
	"slices"
	"testing"
	"time"

	lib "github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
)

// TestTimes: the share of time in which kernels of a process ran is the mean of the samples
// since the last look. A process that was seen once and is left out was idle; one that was
// never seen is unknown, like a client of MPS. Shares are unknown if the driver does not
// report them.
func TestTimes(t *testing.T) {
	r := newRack(dgxa100.New(), false)
	s := r.open(t, Options{})
	p := r.gpus[0]
	r.change(func() {
		p.used = 3 * gib
		p.compute = []lib.ProcessInfo{{Pid: 11, UsedGpuMemory: gib}, {Pid: 12, UsedGpuMemory: gib}, {Pid: 13, UsedGpuMemory: gib}}
	})
	second := func(n float64) uint64 { return uint64(1e9 + n*1e6) }
	const unknown = -1
	for i, row := range []struct {
		after time.Duration
		add   []lib.ProcessUtilizationSample
		ret   lib.Return
		want  []float64
	}{
		{0, nil, lib.SUCCESS, []float64{unknown, unknown, unknown}},
		{time.Second, []lib.ProcessUtilizationSample{{Pid: 11, TimeStamp: second(-50), SmUtil: 9}, {Pid: 11, TimeStamp: second(1), SmUtil: 60}}, lib.SUCCESS, []float64{0.6, unknown, unknown}},
		{time.Second, []lib.ProcessUtilizationSample{{Pid: 11, TimeStamp: second(1.5), SmUtil: 20}, {Pid: 11, TimeStamp: second(2), SmUtil: 40}, {Pid: 12, TimeStamp: second(2), SmUtil: 50}, {Pid: 13, TimeStamp: second(2), SmUtil: 101}, {Pid: 0, TimeStamp: second(2), SmUtil: 5}}, lib.SUCCESS, []float64{0.3, 0.5, unknown}},
		{time.Second, nil, lib.SUCCESS, []float64{0.3, 0.5, unknown}}, // no newer samples yet
		{time.Second, []lib.ProcessUtilizationSample{{Pid: 12, TimeStamp: second(4), SmUtil: 70}}, lib.SUCCESS, []float64{0, 0.7, unknown}},
		{3 * time.Second, nil, lib.SUCCESS, []float64{0, 0, unknown}},
		{time.Second, nil, lib.ERROR_NOT_SUPPORTED, []float64{unknown, unknown, unknown}},
		{time.Second, []lib.ProcessUtilizationSample{{Pid: 12, TimeStamp: second(9), SmUtil: 80}}, lib.SUCCESS, []float64{unknown, 0.8, unknown}},
	} {
		r.after(row.after)
		r.change(func() { p.times, p.timeless = append(p.times, row.add...), row.ret })
		var got []float64
		for _, q := range sampled(t, s)[0].Processes {
			if !q.Timed {
				q.Active = unknown
			}
			got = append(got, q.Active)
		}
		if !slices.EqualFunc(got, row.want, near) {
			t.Errorf("step %d: %v, want %v", i, got, row.want)
		}
	}
	r.change(func() { p.compute = p.compute[2:] })
	sampled(t, s)
	if n := len(s.units[0].times.of); n != 0 {
		t.Errorf("%d processes that have ended are kept", n)
	}
	p.Device.GetProcessUtilizationFunc = func(uint64) ([]lib.ProcessUtilizationSample, lib.Return) { panic("slice bounds out of range") }
	if got := sampled(t, s)[0]; got.Fault != "" || len(got.Processes) != 1 || got.Processes[0].Timed {
		t.Errorf("after a panic of the library: %+v", got)
	}
}
