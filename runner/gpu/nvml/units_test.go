//go:build cgo

package nvml

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/gpu"

	lib "github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
)

func TestProcesses(t *testing.T) {
	const na = unknown
	owner := func(pid int) (model.TaskID, int, bool) {
		if pid >= 100 && pid < 200 {
			return model.TaskID(pid - 100), 2, true
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
			{PID: 101, Task: 1, Attempt: 2, Used: 4 * units.GiB}, {PID: 999, Used: units.GiB},
		}},
		"in several lists": {10 * gib, []lib.ProcessInfo{{Pid: 101, UsedGpuMemory: 4 * gib}}, []lib.ProcessInfo{{Pid: 101, UsedGpuMemory: 4 * gib}, {Pid: 7, UsedGpuMemory: 64 * mib}},
			[]lib.ProcessInfo{{Pid: 101, UsedGpuMemory: 5 * gib}, {Pid: 102, UsedGpuMemory: 2 * gib}}, []gpu.Process{
				{PID: 101, Task: 1, Attempt: 2, Used: 5 * units.GiB, Client: true}, {PID: 7, Used: 64 * units.MiB}, {PID: 102, Task: 2, Attempt: 2, Used: 2 * units.GiB, Client: true},
			}},
		"PID 0":                          {10 * gib, []lib.ProcessInfo{{Pid: 0, UsedGpuMemory: gib}, {Pid: 0, UsedGpuMemory: 2 * gib}}, nil, nil, []gpu.Process{{Used: units.GiB}, {Used: 2 * units.GiB}}},
		"no PID can be so high":          {10 * gib, []lib.ProcessInfo{{Pid: 0xfffffff0, UsedGpuMemory: gib}, {Pid: mostPID, UsedGpuMemory: gib}}, nil, nil, []gpu.Process{{Used: units.GiB}, {Used: units.GiB}}},
		"memory of the only one unknown": {6 * gib, []lib.ProcessInfo{{Pid: 101, UsedGpuMemory: na}}, nil, nil, []gpu.Process{{PID: 101, Task: 1, Attempt: 2, Used: 6 * units.GiB}}},
		"memory known in another list":   {6 * gib, []lib.ProcessInfo{{Pid: 101, UsedGpuMemory: na}}, nil, []lib.ProcessInfo{{Pid: 101, UsedGpuMemory: gib}}, []gpu.Process{{PID: 101, Task: 1, Attempt: 2, Used: units.GiB, Client: true}}},
		"memory of some unknown": {7 * gib, []lib.ProcessInfo{{Pid: 101, UsedGpuMemory: na}, {Pid: 999, UsedGpuMemory: 3 * gib}, {Pid: 102, UsedGpuMemory: na}}, nil, nil, []gpu.Process{
			{PID: 101, Task: 1, Attempt: 2, Used: 2 * units.GiB}, {PID: 999, Used: 3 * units.GiB}, {PID: 102, Task: 2, Attempt: 2, Used: 2 * units.GiB},
		}},
		"more than is in use": {3 * gib, []lib.ProcessInfo{{Pid: 101, UsedGpuMemory: 1 << 50}, {Pid: 102, UsedGpuMemory: gib}}, nil, nil, []gpu.Process{
			{PID: 101, Task: 1, Attempt: 2, Used: 2 * units.GiB}, {PID: 102, Task: 2, Attempt: 2, Used: units.GiB},
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
			if !got.ClientsTold {
				t.Error("the clients of MPS were not told")
			}
			if got.Used != units.Bytes(tt.used) {
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
		if got, want := all[1], (gpu.Device{UUID: "MIG-1-0", Index: 1, Model: "NVIDIA A100-SXM4-40GB MIG 3g.20gb", Capacity: 20*units.GiB - 10*units.MiB, Parent: r.gpus[1].uuid}); got != want {
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
		if len(a.Processes) != 0 || a.Used != 0 || len(b.Processes) != 1 || b.Processes[0].PID != 42 || b.Used != 2*units.GiB {
			t.Errorf("instances %+v and %+v", a, b)
		}
		if !near(a.PowerW+b.PowerW, 300) || !near(a.EnergyJ+b.EnergyJ, 3000) || a.PowerW < 3.9*b.PowerW || a.PowerW > 4.1*b.PowerW || a.CounterJ != 0 || b.CounterJ != 0 {
			t.Errorf("power %v and %v, energy %v and %v of 300 W and 3000 J", a.PowerW, b.PowerW, a.EnergyJ, b.EnergyJ)
		}
		want := activity{1, 1, 1} // it has a process, and no other source
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
	if !errors.As(err, &none) || none.Text != "there is no GPU 9" || !strings.Contains(none.Fix, r.gpus[0].uuid) || none.NoDriver {
		t.Errorf("GPU 9: %v", err)
	}
}
