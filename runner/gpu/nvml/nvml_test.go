//go:build cgo

package nvml

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"carma/internal/units"

	"carma/runner/gpu"

	lib "github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh200"
)

var _ interface {
	gpu.Source
	gpu.Attributing
	gpu.Noting
} = (*Source)(nil)

// near compares figures that are a sum of parts.
func near(a, b float64) bool { return math.Abs(a-b) < 1e-6 }

func TestServers(t *testing.T) {
	for name, tt := range map[string]struct {
		rack     *rack
		model    string
		capacity units.Bytes
		metrics  string
	}{
		"DGX A100": {newRack(dgxa100.New(), false), "Mock NVIDIA A100-SXM4-40GB", 40*units.GiB - 500*units.MiB, gpu.MetricsUtilization},
		"DGX H100": {newRack(dgxh100.New(), true), "NVIDIA H100 80GB HBM3", 80*units.GiB - 500*units.MiB, gpu.MetricsGPM},
		"DGX H200": {newRack(dgxh200.New(), true), "NVIDIA H200 141GB HBM3e", 141*units.GiB - 500*units.MiB, gpu.MetricsGPM},
	} {
		t.Run(name, func(t *testing.T) {
			s := tt.rack.open(t, Options{})
			if !strings.HasPrefix(s.Name(), "nvml, driver 5") {
				t.Errorf("name %q", s.Name())
			}
			all := devices(t, s)
			if len(all) != 8 {
				t.Fatalf("%d GPUs", len(all))
			}
			for i, d := range all {
				want := gpu.Device{UUID: tt.rack.gpus[i].uuid, Index: i, Model: tt.model, Capacity: tt.capacity}
				if d != want {
					t.Errorf("GPU %d is %+v, want %+v", i, d, want)
				}
			}
			p := tt.rack.gpus[3]
			tt.rack.change(func() {
				p.used, p.rates, p.celsius, p.milliwatts = 10*gib, lib.Utilization{Gpu: 90, Memory: 30}, 61, 250_000
				p.level = activity{0.5, 0.25, 0.125}
			})
			sampled(t, s)
			tt.rack.after(10 * time.Second)
			samples := sampled(t, s)
			got := samples[3]
			if got.UUID != p.uuid || got.Used != 10*units.GiB || got.TemperatureC != 61 || got.PowerW != 250 || !near(got.EnergyJ, 2500) || got.CounterJ != float64(p.millijoules)/1000 || got.Fault != "" || len(got.Warnings) > 0 {
				t.Errorf("sample %+v", got)
			}
			want, coarse := activity{0.5, 0.25, 0.125}, false
			if tt.metrics == gpu.MetricsUtilization {
				want, coarse = activity{0.9, 0.9, 0.3}, true
			}
			if !near(got.SMACT, want.smact) || !near(got.SMOCC, want.smocc) || !near(got.DRAMA, want.drama) || got.Coarse != coarse || got.Metrics != tt.metrics {
				t.Errorf("activity %v %v %v by %s, coarse %v; want %v by %s", got.SMACT, got.SMOCC, got.DRAMA, got.Metrics, got.Coarse, want, tt.metrics)
			}
			if idle := samples[0]; idle.Used != 0 || idle.SMACT != 0 || idle.PowerW != 70 {
				t.Errorf("idle GPU %+v", idle)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if n := tt.rack.calls; n["shutdown"] != 1 || n["alloc"] != n["free"] {
				t.Errorf("not everything was given back: %v", n)
			}
			if _, err := s.Sample(t.Context()); !errors.Is(err, errClosed) {
				t.Errorf("sample after close: %v", err)
			}
		})
	}
}

func TestGPM(t *testing.T) {
	r := newRack(dgxh100.New(), true)
	s := r.open(t, Options{})
	p := r.gpus[0]
	r.change(func() { p.level, p.rates = activity{0.8, 0.4, 0.2}, lib.Utilization{Gpu: 99, Memory: 50} })

	// This is too soon after the first sample, which was taken at the opening.
	r.after(50 * time.Millisecond)
	if got := sampled(t, s)[0]; got.Metrics != gpu.MetricsUtilization || !got.Coarse || got.SMACT != 0.99 {
		t.Errorf("after 50 ms: %+v", got)
	}
	r.after(50 * time.Millisecond)
	if got := sampled(t, s)[0]; got.Metrics != gpu.MetricsGPM || got.Coarse || !near(got.SMACT, 0.8) {
		t.Errorf("after 100 ms: %+v", got)
	}
	// Only the activity since the last sample counts.
	r.change(func() { p.level = activity{0.1, 0.1, 0.1} })
	r.after(time.Second)
	if got := sampled(t, s)[0]; !near(got.SMACT, 0.1) {
		t.Errorf("a second later: %+v", got)
	}
	r.after(20 * time.Millisecond)
	if got := sampled(t, s)[0]; !near(got.SMACT, 0.1) || got.Metrics != gpu.MetricsGPM {
		t.Errorf("asked too soon: %+v", got)
	}
	// It fails, and works again from the second sample on.
	r.change(func() { p.broken = lib.ERROR_UNKNOWN })
	r.after(time.Second)
	if got := sampled(t, s)[0]; got.Metrics != gpu.MetricsUtilization || !got.Coarse {
		t.Errorf("while GPM fails: %+v", got)
	}
	r.change(func() { p.broken = lib.SUCCESS })
	r.after(time.Second)
	if got := sampled(t, s)[0]; got.Metrics != gpu.MetricsUtilization {
		t.Errorf("with one sample: %+v", got)
	}
	r.after(time.Second)
	if got := sampled(t, s)[0]; got.Metrics != gpu.MetricsGPM {
		t.Errorf("after GPM has failed: %+v", got)
	}
	// An impossible figure is not passed on. The metric keeps its last one for ten seconds;
	// the others continue.
	for _, bad := range []float64{math.NaN(), -0.5, 1.2, 7, math.Inf(1)} {
		r.change(func() { p.level = activity{0.3, 0.2, 0.1} })
		r.after(time.Second)
		sampled(t, s)
		r.change(func() { p.level = activity{0.6, bad, 0.4} })
		for range 10 {
			r.after(time.Second)
			if got := sampled(t, s)[0]; got.Metrics != gpu.MetricsGPM || !near(got.SMACT, 0.6) || !near(got.SMOCC, 0.2) || !near(got.DRAMA, 0.4) {
				t.Errorf("occupancy %v: %+v", bad, got)
			}
		}
		r.after(time.Second)
		if got := sampled(t, s)[0]; got.Metrics != gpu.MetricsUtilization || got.SMOCC != 0.99 {
			t.Errorf("occupancy %v for 11 s: %+v", bad, got)
		}
		r.change(func() { p.level.smocc, p.busy = 0, activity{} })
		r.after(time.Second)
		sampled(t, s) // covers time before the counters restarted
		r.after(time.Second)
		if got := sampled(t, s)[0]; got.Metrics != gpu.MetricsGPM {
			t.Errorf("after occupancy %v: %+v", bad, got)
		}
	}
}

// elsewhere is an Activity.
type elsewhere map[string]activity

func (e elsewhere) Activity(uuid string, instance int) (float64, float64, float64, bool) {
	a, ok := e[uuid]
	return a.smact, a.smocc, a.drama, ok && instance == -1
}

func TestActivityFromElsewhere(t *testing.T) {
	r := newRack(dgxa100.New(), false)
	r.gpus[0].rates.Gpu, r.gpus[1].rates.Gpu = 80, 80
	s := r.open(t, Options{Activity: elsewhere{r.gpus[1].uuid: {0.3, 0.2, 0.1}}})
	got := sampled(t, s)
	if got[0].Metrics != gpu.MetricsUtilization || got[0].SMACT != 0.8 || !got[0].Coarse {
		t.Errorf("not on the page: %+v", got[0])
	}
	if got[1].Metrics != gpu.MetricsDCGM || got[1].SMACT != 0.3 || got[1].SMOCC != 0.2 || got[1].DRAMA != 0.1 || got[1].Coarse {
		t.Errorf("on the page: %+v", got[1])
	}
	h := newRack(dgxh100.New(), true)
	s = h.open(t, Options{Activity: elsewhere{h.gpus[0].uuid: {0.3, 0.2, 0.1}}})
	h.after(time.Second)
	if got := sampled(t, s)[0]; got.Metrics != gpu.MetricsGPM {
		t.Errorf("GPM is better: %+v", got)
	}
}

func TestCannotOpen(t *testing.T) {
	for ret, want := range map[lib.Return]string{
		lib.ERROR_LIBRARY_NOT_FOUND:       "libnvidia-ml.so.1 was not found",
		lib.ERROR_DRIVER_NOT_LOADED:       "is not loaded",
		lib.ERROR_LIB_RM_VERSION_MISMATCH: "different versions",
		lib.ERROR_NO_PERMISSION:           "no permission",
		lib.ERROR_UNKNOWN:                 "ERROR_UNKNOWN",
	} {
		r := newRack(dgxa100.New(), false)
		r.init = ret
		_, err := Open(t.Context(), r.Server, Options{})
		var none *Unavailable
		if !errors.As(err, &none) || !strings.Contains(none.Text, want) || none.Fix == "" {
			t.Errorf("%v: %v", ret, err)
			continue
		}
		if absent := ret == lib.ERROR_LIBRARY_NOT_FOUND; none.NoDriver != absent {
			t.Errorf("%v: no driver is %v", ret, none.NoDriver)
		}
	}
	r := newRack(dgxa100.NewWithGPUs(), false)
	if _, err := Open(t.Context(), r.Server, Options{}); err == nil || !strings.Contains(err.Error(), "no GPU") || r.calls["shutdown"] != 1 {
		t.Errorf("no GPU: %v, %v", err, r.calls)
	}
}

// TestNoLibrary: the real library, on a machine that has none.
func TestNoLibrary(t *testing.T) {
	_, err := Open(t.Context(), lib.New(lib.WithLibraryPath("/none/libnvidia-ml.so.1")), Options{})
	var none *Unavailable
	if !errors.As(err, &none) || !none.NoDriver {
		t.Errorf("got %v", err)
	}
}

// TestOldDriver: a call of a function that the driver's library lacks would end
// the program.
func TestOldDriver(t *testing.T) {
	r := newRack(dgxa100.New(), false)
	for _, name := range []string{
		"nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMPSComputeRunningProcesses", "nvmlDeviceGetMPSComputeRunningProcesses_v2",
		"nvmlDeviceGetMPSComputeRunningProcesses_v3", "nvmlGpmQueryDeviceSupport", "nvmlDeviceGetMigMode", "nvmlDeviceGetRemappedRows",
		"nvmlDeviceGetCurrentClocksEventReasons",
	} {
		r.gone[name] = true
	}
	for _, p := range r.gpus { // a mock without a function panics when it is called
		p.GetMemoryInfo_v2Func, p.GetMPSComputeRunningProcessesFunc, p.GpmQueryDeviceSupportFunc = nil, nil, nil
		p.GetMigModeFunc, p.GetRemappedRowsFunc, p.GetCurrentClocksEventReasonsFunc = nil, nil, nil
	}
	r.gpus[1].compute, r.gpus[1].used = []lib.ProcessInfo{{Pid: 7, UsedGpuMemory: 300 * mib}}, 300*mib
	r.gpus[2].used = 2 * gib // the driver does not name the process
	s := r.open(t, Options{})
	// The driver's own memory is known only on an idle card.
	all := devices(t, s)
	if all[0].Capacity != 40*units.GiB-500*units.MiB || all[1].Capacity != 40*units.GiB || all[2].Capacity != 40*units.GiB {
		t.Errorf("capacities %d, %d and %d", all[0].Capacity, all[1].Capacity, all[2].Capacity)
	}
	got := sampled(t, s)
	if got[0].ClientsTold || got[0].Used != 0 || got[1].Used != 800*units.MiB || got[0].Metrics != gpu.MetricsUtilization {
		t.Errorf("samples %+v %+v", got[0], got[1])
	}
}

// TestComputeMode: a card that only one process may use is recognised; a driver's library
// may lack the call.
func TestComputeMode(t *testing.T) {
	r := newRack(dgxa100.New(), false)
	r.gpus[1].GetComputeModeFunc = func() (lib.ComputeMode, lib.Return) { return lib.COMPUTEMODE_EXCLUSIVE_PROCESS, lib.SUCCESS }
	r.gpus[2].GetComputeModeFunc = func() (lib.ComputeMode, lib.Return) {
		return lib.COMPUTEMODE_EXCLUSIVE_PROCESS, lib.ERROR_NOT_SUPPORTED
	}
	all := devices(t, r.open(t, Options{}))
	if all[0].Exclusive || !all[1].Exclusive || all[2].Exclusive {
		t.Errorf("devices %+v", all[:3])
	}
	r = newRack(dgxa100.New(), false)
	r.gone["nvmlDeviceGetComputeMode"] = true
	for _, p := range r.gpus {
		p.GetComputeModeFunc = nil
	}
	if devices(t, r.open(t, Options{}))[0].Exclusive {
		t.Error("exclusive, though nobody said so")
	}
}

// TestNotSupported: the library has the second version of the memory call, but
// the card does not.
func TestNotSupported(t *testing.T) {
	r := newRack(dgxa100.New(), false)
	for _, p := range r.gpus {
		p.GetMemoryInfo_v2Func = func() (lib.Memory_v2, lib.Return) { return lib.Memory_v2{}, lib.ERROR_NOT_SUPPORTED }
	}
	s := r.open(t, Options{})
	r.change(func() { r.gpus[0].used = gib })
	if got := sampled(t, s)[0]; got.Used != units.GiB || got.Fault != "" {
		t.Errorf("sample %+v", got)
	}
}
