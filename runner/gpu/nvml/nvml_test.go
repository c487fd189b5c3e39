//go:build cgo

package nvml

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"carma/mapper"
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
		capacity mapper.Bytes
		metrics  string
	}{
		"DGX A100": {newRack(dgxa100.New(), false), "Mock NVIDIA A100-SXM4-40GB", 40*mapper.GiB - 500*mapper.MiB, gpu.MetricsUtilization},
		"DGX H100": {newRack(dgxh100.New(), true), "NVIDIA H100 80GB HBM3", 80*mapper.GiB - 500*mapper.MiB, gpu.MetricsGPM},
		"DGX H200": {newRack(dgxh200.New(), true), "NVIDIA H200 141GB HBM3e", 141*mapper.GiB - 500*mapper.MiB, gpu.MetricsGPM},
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
			if got.UUID != p.uuid || got.Used != 10*mapper.GiB || got.TemperatureC != 61 || got.PowerW != 250 || !near(got.EnergyJ, 2500) || got.Fault != "" || len(got.Warnings) > 0 {
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

	// Too soon after the first sample, which was taken at the opening.
	r.after(50 * time.Millisecond)
	if got := sampled(t, s)[0]; got.Metrics != gpu.MetricsUtilization || !got.Coarse || got.SMACT != 0.99 {
		t.Errorf("after 50 ms: %+v", got)
	}
	r.after(50 * time.Millisecond)
	if got := sampled(t, s)[0]; got.Metrics != gpu.MetricsGPM || got.Coarse || !near(got.SMACT, 0.8) {
		t.Errorf("after 100 ms: %+v", got)
	}
	// Only what happened since the last sample counts.
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
	// What cannot be is not passed on.
	for _, bad := range []float64{math.NaN(), -0.5, 7, math.Inf(1)} {
		r.change(func() { p.level.smocc, p.busy = bad, activity{} })
		sampled(t, s)
		r.after(time.Second)
		if got := sampled(t, s)[0]; got.Metrics != gpu.MetricsUtilization || got.SMOCC != 0.99 {
			t.Errorf("occupancy %v: %+v", bad, got)
		}
		r.change(func() { p.level.smocc, p.busy = 0, activity{} })
		r.after(time.Second)
		sampled(t, s)
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

func TestProcesses(t *testing.T) {
	const na = unknown
	owner := func(pid int) (mapper.TaskID, int, bool) {
		if pid >= 100 && pid < 200 {
			return mapper.TaskID(pid - 100), 2, true
		}
		return 0, 0, false
	}
	for name, tt := range map[string]struct {
		used                      uint64
		compute, graphics, shared []lib.ProcessInfo
		want                      []gpu.Process
	}{
		"none": {used: 5 * gib},
		"ours and foreign": {10 * gib, []lib.ProcessInfo{{Pid: 101, UsedGpuMemory: 4 * gib}, {Pid: 999, UsedGpuMemory: 1 * gib}}, nil, nil, []gpu.Process{
			{PID: 101, Task: 1, Attempt: 2, Used: 4 * mapper.GiB}, {PID: 999, Used: mapper.GiB},
		}},
		"in several lists": {10 * gib, []lib.ProcessInfo{{Pid: 101, UsedGpuMemory: 4 * gib}}, []lib.ProcessInfo{{Pid: 101, UsedGpuMemory: 4 * gib}, {Pid: 7, UsedGpuMemory: 64 * mib}},
			[]lib.ProcessInfo{{Pid: 101, UsedGpuMemory: 5 * gib}, {Pid: 102, UsedGpuMemory: 2 * gib}}, []gpu.Process{
				{PID: 101, Task: 1, Attempt: 2, Used: 5 * mapper.GiB}, {PID: 7, Used: 64 * mapper.MiB}, {PID: 102, Task: 2, Attempt: 2, Used: 2 * mapper.GiB},
			}},
		"PID 0":                          {10 * gib, []lib.ProcessInfo{{Pid: 0, UsedGpuMemory: gib}, {Pid: 0, UsedGpuMemory: 2 * gib}}, nil, nil, []gpu.Process{{Used: mapper.GiB}, {Used: 2 * mapper.GiB}}},
		"no PID can be so high":          {10 * gib, []lib.ProcessInfo{{Pid: 0xfffffff0, UsedGpuMemory: gib}, {Pid: mostPID, UsedGpuMemory: gib}}, nil, nil, []gpu.Process{{Used: mapper.GiB}, {Used: mapper.GiB}}},
		"memory of the only one unknown": {6 * gib, []lib.ProcessInfo{{Pid: 101, UsedGpuMemory: na}}, nil, nil, []gpu.Process{{PID: 101, Task: 1, Attempt: 2, Used: 6 * mapper.GiB}}},
		"memory known in another list":   {6 * gib, []lib.ProcessInfo{{Pid: 101, UsedGpuMemory: na}}, nil, []lib.ProcessInfo{{Pid: 101, UsedGpuMemory: gib}}, []gpu.Process{{PID: 101, Task: 1, Attempt: 2, Used: mapper.GiB}}},
		"memory of some unknown": {7 * gib, []lib.ProcessInfo{{Pid: 101, UsedGpuMemory: na}, {Pid: 999, UsedGpuMemory: 3 * gib}, {Pid: 102, UsedGpuMemory: na}}, nil, nil, []gpu.Process{
			{PID: 101, Task: 1, Attempt: 2, Used: 2 * mapper.GiB}, {PID: 999, Used: 3 * mapper.GiB}, {PID: 102, Task: 2, Attempt: 2, Used: 2 * mapper.GiB},
		}},
		"more than is in use": {3 * gib, []lib.ProcessInfo{{Pid: 101, UsedGpuMemory: 1 << 50}, {Pid: 102, UsedGpuMemory: gib}}, nil, nil, []gpu.Process{
			{PID: 101, Task: 1, Attempt: 2, Used: 2 * mapper.GiB}, {PID: 102, Task: 2, Attempt: 2, Used: mapper.GiB},
		}},
		"a list without an end": {3 * gib, make([]lib.ProcessInfo, mostProcesses+1), nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRack(dgxa100.New(), false)
			p := r.gpus[0]
			p.used, p.compute, p.graphics, p.shared = tt.used, tt.compute, tt.graphics, tt.shared
			s := r.open(t, Options{})
			s.SetOwner(owner)
			got := sampled(t, s)[0]
			if !slices.Equal(got.Processes, tt.want) {
				t.Errorf("got  %+v\nwant %+v", got.Processes, tt.want)
			}
			if told := len(got.Warnings) == 1 && strings.Contains(got.Warnings[0], "memory of 2 processes"); told != (name == "memory of some unknown") {
				t.Errorf("warnings %q", got.Warnings)
			}
			if got.Used != mapper.Bytes(tt.used) {
				t.Errorf("%d in use, want %d", got.Used, tt.used)
			}
		})
	}
}

func TestMIG(t *testing.T) {
	for _, hopper := range []bool{false, true} {
		server := dgxa100.New()
		if hopper {
			server = dgxh100.New()
		}
		r := newRack(server, hopper)
		parts := r.split(1, 20*gib, 5*gib)
		s := r.open(t, Options{Activity: elsewhere{r.gpus[1].uuid: {1, 1, 1}}}) // says nothing of instances
		all := devices(t, s)
		if len(all) != 9 {
			t.Fatalf("%d GPUs, want 7 cards and 2 instances", len(all))
		}
		if got, want := all[1], (gpu.Device{UUID: "MIG-1-0", Index: 1, Model: "NVIDIA A100-SXM4-40GB MIG 3g.20gb", Capacity: 20*mapper.GiB - 10*mapper.MiB, Parent: r.gpus[1].uuid}); got != want {
			t.Errorf("instance %+v, want %+v", got, want)
		}
		for i, d := range all {
			if d.Index != i || d.UUID == r.gpus[1].uuid {
				t.Errorf("GPU %d is %+v", i, d)
			}
		}
		r.change(func() {
			r.gpus[1].milliwatts = 300_000
			parts[1].used, parts[1].level = 2*gib, activity{0.6, 0.3, 0.2}
			parts[1].compute = []lib.ProcessInfo{{Pid: 42, UsedGpuMemory: 2 * gib}}
		})
		sampled(t, s)
		r.after(10 * time.Second)
		got := sampled(t, s)
		a, b := got[1], got[2]
		if len(a.Processes) != 0 || a.Used != 0 || len(b.Processes) != 1 || b.Processes[0].PID != 42 || b.Used != 2*mapper.GiB {
			t.Errorf("instances %+v and %+v", a, b)
		}
		if !near(a.PowerW+b.PowerW, 300) || !near(a.EnergyJ+b.EnergyJ, 3000) || a.PowerW < 3.9*b.PowerW || a.PowerW > 4.1*b.PowerW {
			t.Errorf("power %v and %v, energy %v and %v of 300 W and 3000 J", a.PowerW, b.PowerW, a.EnergyJ, b.EnergyJ)
		}
		want := activity{1, 1, 1} // it has a process, and nothing tells more
		metrics := gpu.MetricsNone
		if hopper {
			want, metrics = activity{0.6, 0.3, 0.2}, gpu.MetricsGPM
		}
		if !near(b.SMACT, want.smact) || !near(b.SMOCC, want.smocc) || b.Metrics != metrics || a.SMACT != 0 || b.Coarse == hopper {
			t.Errorf("activity %+v and %+v", a, b)
		}
		// A fault of the card is one of all its instances.
		r.xid(1, 48)
		got = sampled(t, s)
		if got[1].Fault == "" || got[2].Fault == "" || got[0].Fault != "" || got[3].Fault != "" {
			t.Errorf("faults %q %q %q %q", got[0].Fault, got[1].Fault, got[2].Fault, got[3].Fault)
		}
	}
}

func TestMIGLeavesOut(t *testing.T) {
	r := newRack(dgxa100.New(), false)
	parts := r.split(0, 20*gib, 20*gib)
	parts[1].instance = parts[0].instance
	r.split(2)
	r.gpus[2].parts = []*part{}
	s := r.open(t, Options{})
	if n := len(devices(t, s)); n != 7 {
		t.Errorf("%d GPUs, want 6 cards and 1 instance", n)
	}
	notes := strings.Join(s.Notes(), "\n")
	if !strings.Contains(notes, "MIG-0-1 is left out: it shares the memory of GPU instance 1") || !strings.Contains(notes, "GPU 2 is left out: MIG is on, but it has no instance") {
		t.Errorf("notes:\n%s", notes)
	}
}

func TestOnly(t *testing.T) {
	r := newRack(dgxa100.New(), false)
	r.split(1, 20*gib, 20*gib)
	for _, tt := range []struct {
		only []string
		want []string
	}{
		{[]string{"0", "3"}, []string{r.gpus[0].uuid, r.gpus[3].uuid}},
		{[]string{r.gpus[5].uuid}, []string{r.gpus[5].uuid}},
		{[]string{strings.ToUpper(r.gpus[5].uuid), "5"}, []string{r.gpus[5].uuid}},
		{[]string{"1"}, []string{"MIG-1-0", "MIG-1-1"}},
		{[]string{"MIG-1-1"}, []string{"MIG-1-1"}},
	} {
		s := r.open(t, Options{Only: tt.only})
		var got []string
		for _, d := range devices(t, s) {
			got = append(got, d.UUID)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("only %v: %v", tt.only, got)
		}
		if n := len(sampled(t, s)); n != len(tt.want) {
			t.Errorf("only %v: %d samples", tt.only, n)
		}
	}
	_, err := Open(t.Context(), r.Server, Options{Only: []string{"9"}})
	var none *Unavailable
	if !errors.As(err, &none) || none.Text != "there is no GPU 9" || !strings.Contains(none.Mend, r.gpus[0].uuid) || none.NoDriver {
		t.Errorf("GPU 9: %v", err)
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
		if !errors.As(err, &none) || !strings.Contains(none.Text, want) || none.Mend == "" {
			t.Errorf("%v: %v", ret, err)
			continue
		}
		if absent := ret == lib.ERROR_LIBRARY_NOT_FOUND || ret == lib.ERROR_DRIVER_NOT_LOADED; none.NoDriver != absent {
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

// TestOldDriver: the functions that its library lacks would end the program.
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
	r.gpus[1].compute, r.gpus[1].used = []lib.ProcessInfo{{Pid: 7, UsedGpuMemory: gib}}, gib
	s := r.open(t, Options{})
	// Of an idle card what the driver keeps for itself can be told, else not.
	all := devices(t, s)
	if all[0].Capacity != 40*mapper.GiB-500*mapper.MiB || all[1].Capacity != 40*mapper.GiB {
		t.Errorf("capacities %d and %d", all[0].Capacity, all[1].Capacity)
	}
	got := sampled(t, s)
	if got[0].Used != 0 || got[1].Used != mapper.GiB+500*mapper.MiB || got[0].Metrics != gpu.MetricsUtilization {
		t.Errorf("samples %+v %+v", got[0], got[1])
	}
}

// TestNotSupported: the library has the second version of the memory call, the
// card not.
func TestNotSupported(t *testing.T) {
	r := newRack(dgxa100.New(), false)
	for _, p := range r.gpus {
		p.GetMemoryInfo_v2Func = func() (lib.Memory_v2, lib.Return) { return lib.Memory_v2{}, lib.ERROR_NOT_SUPPORTED }
	}
	s := r.open(t, Options{})
	r.change(func() { r.gpus[0].used = gib })
	if got := sampled(t, s)[0]; got.Used != mapper.GiB || got.Fault != "" {
		t.Errorf("sample %+v", got)
	}
}
