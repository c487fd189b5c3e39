//go:build cgo

package nvml

import (
	"slices"
	"strings"
	"testing"
	"time"

	"carma/internal/units"

	lib "github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
)

func TestLost(t *testing.T) {
	for ret, want := range map[lib.Return]string{
		lib.ERROR_GPU_IS_LOST:    "the GPU is lost",
		lib.ERROR_RESET_REQUIRED: "nvidia-smi --gpu-reset -i 2",
		lib.ERROR_UNINITIALIZED:  "ERROR_UNINITIALIZED",
	} {
		r := newRack(dgxh100.New(), true)
		s := r.open(t, Options{})
		p := r.gpus[2]
		r.change(func() { p.used = 3 * gib })
		r.after(time.Second)
		joules := sampled(t, s)[2].EnergyJ
		r.change(func() { p.fails = ret })
		for range 5 {
			r.after(time.Second)
			got := sampled(t, s)
			if !strings.Contains(got[2].Fault, want) || got[2].Used != 3*units.GiB || got[2].EnergyJ < joules {
				t.Fatalf("%v: %+v", ret, got[2])
			}
			if got[1].Fault != "" || got[1].Metrics != "gpm" {
				t.Fatalf("%v: its neighbour: %+v", ret, got[1])
			}
		}
		if r.calls["init"] != 1 {
			t.Errorf("%v: the library was begun anew at once", ret)
		}
		// The GPU is searched, and counts as healthy again when it is back.
		r.after(reviveFirst)
		if got := sampled(t, s)[2]; got.Fault == "" || r.calls["init"] != 2 {
			t.Errorf("%v: after a while: %+v, %v", ret, got, r.calls)
		}
		r.change(func() { p.fails = lib.SUCCESS })
		r.after(time.Second)
		if got := sampled(t, s)[2]; got.Fault != "" {
			t.Errorf("%v: back: %+v", ret, got)
		}
		r.after(time.Second)
		if got := sampled(t, s)[2]; got.Fault != "" || got.Metrics != "gpm" {
			t.Errorf("%v: a second later: %+v", ret, got)
		}
		r.after(time.Hour)
		if sampled(t, s); r.calls["init"] != 2 {
			t.Errorf("%v: the library was begun anew while all is well: %v", ret, r.calls)
		}
		s.Close()
		if r.calls["alloc"] != r.calls["free"] {
			t.Errorf("%v: not every GPM sample was freed: %v", ret, r.calls)
		}
	}
}

// TestNoInit checks that all GPUs have a fault while the driver is not loaded.
func TestNoInit(t *testing.T) {
	r := newRack(dgxh100.New(), true)
	s := r.open(t, Options{})
	r.change(func() {
		r.init = lib.ERROR_DRIVER_NOT_LOADED
		for _, p := range r.gpus {
			p.fails = lib.ERROR_UNINITIALIZED
		}
	})
	sampled(t, s)
	r.after(reviveFirst)
	sampled(t, s)
	r.after(time.Minute)
	for _, got := range sampled(t, s) {
		if !strings.Contains(got.Fault, "is not loaded") {
			t.Fatalf("without a driver: %+v", got)
		}
	}
	r.change(func() {
		r.init = lib.SUCCESS
		for _, p := range r.gpus {
			p.fails = lib.SUCCESS
		}
	})
	r.after(2 * reviveLast)
	for _, got := range sampled(t, s) {
		if got.Fault != "" {
			t.Fatalf("with it again: %+v", got)
		}
	}
}

// TestGarbage checks that impossible figures are not passed on, and that a GPU gets a fault
// only if they persist.
func TestGarbage(t *testing.T) {
	for name, spoil := range map[string]func(*part){
		"more in use than there is": func(p *part) { p.used = 1 << 60 },
		"no memory at all":          func(p *part) { p.total, p.reserved, p.used = 0, 0, 0 },
		"reserved beyond all":       func(p *part) { p.reserved = unknown },
		"an error":                  func(p *part) { p.fails = lib.ERROR_UNKNOWN },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRack(dgxa100.New(), false)
			s := r.open(t, Options{})
			p := r.gpus[0]
			r.change(func() { p.used = 3 * gib })
			sampled(t, s)
			total, reserved := p.total, p.reserved
			for i := range 4 {
				r.change(func() { spoil(p) })
				r.after(time.Second)
				got := sampled(t, s)[0]
				if got.Used != 3*units.GiB {
					t.Errorf("reading %d: %d in use", i, got.Used)
				}
				if faulty := got.Fault != ""; faulty != (i >= tolerated) {
					t.Errorf("reading %d: fault %q", i, got.Fault)
				}
			}
			r.change(func() { p.total, p.reserved, p.used, p.fails = total, reserved, 4*gib, lib.SUCCESS })
			if got := sampled(t, s)[0]; got.Fault != "" || got.Used != 4*units.GiB {
				t.Errorf("well again: %+v", got)
			}
		})
	}
}

// TestNonsense checks that impossible figures other than memory are omitted.
func TestNonsense(t *testing.T) {
	r := newRack(dgxa100.New(), false)
	p := r.gpus[0]
	p.milliwatts, p.celsius, p.rates, p.ecc, p.slow = ^uint32(0), ^uint32(0), lib.Utilization{Gpu: 4000, Memory: 1}, unknown, unknown
	s := r.open(t, Options{})
	got := sampled(t, s)[0]
	if got.PowerW != 0 || got.TemperatureC != 0 || got.SMACT != 0 || got.ECCErrors != 0 || len(got.Warnings) != 0 || got.Fault != "" {
		t.Errorf("sample %+v", got)
	}
}

func TestXids(t *testing.T) {
	for _, tt := range []struct {
		xid      uint64
		want     severity
		contains string
	}{
		{13, harmless, ""}, {31, harmless, ""}, {43, harmless, ""}, {45, harmless, ""}, {68, harmless, ""},
		{63, suspicious, "reset the GPU when convenient (Xid 63)"}, {94, suspicious, "Xid 94"}, {109, suspicious, "Xid 109"}, {9999, suspicious, "does not know"},
		{48, fatal, "memory error (Xid 48); to mend it: stop the daemon, nvidia-smi --gpu-reset -i 4"}, {64, fatal, "spare rows"}, {74, fatal, "NVLink"},
		{79, fatal, "fallen off the bus (Xid 79); to mend it: restart the machine"}, {95, fatal, "uncontained"}, {119, fatal, "GSP"}, {120, fatal, "GSP"},
	} {
		got, text := classify(tt.xid, 4)
		if got != tt.want || !strings.Contains(text, tt.contains) || (text == "") != (got == harmless) {
			t.Errorf("Xid %d is %d, %q", tt.xid, got, text)
		}
	}
	for xid := range resets {
		if programs[xid] || noted[xid] != "" {
			t.Errorf("Xid %d is in two lists", xid)
		}
	}
	for xid := range noted {
		if programs[xid] {
			t.Errorf("Xid %d is in two lists", xid)
		}
	}
}

func TestEvents(t *testing.T) {
	r := newRack(dgxh100.New(), true)
	s := r.open(t, Options{})
	if r.calls["register"] != 8 {
		t.Fatalf("%d GPUs are watched", r.calls["register"])
	}
	r.xid(2, 31)
	r.xid(3, 94)
	r.xid(3, 94)
	got := sampled(t, s)
	if got[2].Fault != "" || len(got[2].Warnings) > 0 {
		t.Errorf("a program's own fault: %+v", got[2])
	}
	if got[3].Fault != "" || len(got[3].Warnings) != 1 || !strings.Contains(got[3].Warnings[0], "Xid 94") {
		t.Errorf("a contained error: %+v", got[3])
	}
	r.xid(4, 79)
	r.xid(4, 48)
	r.change(func() {
		r.queue = append(r.queue, lib.EventData{Device: r.Devices[5], EventType: lib.EventTypeDoubleBitEccError, EventData: 1 << 40})
		r.queue = append(r.queue, lib.EventData{Device: r.Devices[6], EventType: lib.EventTypePState, EventData: 48})
	})
	first := sampled(t, s)
	if !strings.Contains(first[4].Fault, "Xid 79") || !strings.Contains(first[5].Fault, "Xid 48") || first[6].Fault != "" {
		t.Errorf("faults %q, %q, %q", first[4].Fault, first[5].Fault, first[6].Fault)
	}
	// The fault stays the same until somebody fixes it.
	r.after(time.Hour)
	if got := sampled(t, s); got[4].Fault != first[4].Fault || got[5].Fault != first[5].Fault {
		t.Errorf("an hour later %q, %q", got[4].Fault, got[5].Fault)
	}
	// A GPU that was lost and is back has been reset.
	r.change(func() { r.gpus[4].fails = lib.ERROR_GPU_IS_LOST })
	if got := sampled(t, s)[4]; got.Fault != first[4].Fault {
		t.Errorf("lost: %q", got.Fault)
	}
	r.change(func() { r.gpus[4].fails = lib.SUCCESS })
	if got := sampled(t, s)[4]; got.Fault != "" {
		t.Errorf("back: %q", got.Fault)
	}
}

// TestRemembered: a fatal error is reported once. The next source gets it, and clears it if
// the GPU was lost and is back, or somebody says that it was fixed.
func TestRemembered(t *testing.T) {
	r := newRack(dgxh100.New(), true)
	s := r.open(t, Options{})
	r.xid(4, 48)
	told := sampled(t, s)[4]
	if !told.Lasts || told.Told || told.Fault == "" {
		t.Fatalf("after a fatal error: %+v", told)
	}
	next := r.open(t, Options{})
	if got := sampled(t, next)[4]; got.Fault != "" {
		t.Fatalf("the driver has reported it again: %+v; nothing has to be remembered", got)
	}
	for _, end := range []func(){
		func() {
			r.change(func() { r.gpus[4].fails = lib.ERROR_GPU_IS_LOST })
			sampled(t, next)
			r.change(func() { r.gpus[4].fails = lib.SUCCESS })
		},
		func() {
			if err := next.Forgive(t.Context(), told.UUID); err != nil {
				t.Error(err)
			}
		},
	} {
		if err := next.Remember(t.Context(), told.UUID, told.Fault, false); err != nil {
			t.Fatal(err)
		}
		r.after(time.Hour)
		if got := sampled(t, next); got[4].Fault != told.Fault || !got[4].Lasts || got[3].Fault != "" {
			t.Errorf("remembered: %+v, its neighbour %+v", got[4], got[3])
		}
		end()
		if got := sampled(t, next)[4]; got.Fault != "" || got.Lasts {
			t.Errorf("mended: %+v", got)
		}
	}
}

// TestRecoveryAction: if the driver has requested a reset, the reset is reported, also to the
// next source. If it has requested nothing, nothing is reported.
func TestRecoveryAction(t *testing.T) {
	r := newRack(dgxh100.New(), true)
	r.change(func() {
		for _, p := range r.gpus {
			p.recovery = int32(lib.GPU_RECOVERY_ACTION_NONE)
		}
	})
	s := r.open(t, Options{})
	r.xid(4, 48)
	r.xid(5, 48)
	r.change(func() {
		r.gpus[4].recovery = int32(lib.GPU_RECOVERY_ACTION_GPU_RESET)
		r.gpus[6].recovery = int32(lib.GPU_RECOVERY_ACTION_NODE_REBOOT)
		r.gpus[7].recovery = int32(lib.GPU_RECOVERY_ACTION_DRAIN_P2P)
	})
	sampled(t, s)
	r.after(healthEvery)
	sampled(t, s)
	r.after(healthEvery)
	got := sampled(t, s)
	if !got[4].Told || got[5].Told || !got[5].Lasts || !strings.Contains(got[6].Fault, "restarted") || !got[6].Told || got[7].Fault != "" {
		t.Fatalf("%+v", got[4:])
	}
	next := r.open(t, Options{})
	for _, g := range got[4:7] {
		if err := next.Remember(t.Context(), g.UUID, g.Fault, g.Told); err != nil {
			t.Fatal(err)
		}
	}
	if again := sampled(t, next); again[4].Fault != got[4].Fault || again[5].Fault != got[5].Fault || again[6].Fault != got[6].Fault {
		t.Errorf("remembered: %+v", again[4:])
	}
	if err := next.Forgive(t.Context(), got[4].UUID); err != nil {
		t.Fatal(err)
	}
	if forgiven := sampled(t, next)[4]; forgiven.Fault != "" {
		t.Errorf("opened by somebody: %+v", forgiven)
	}
	r.after(healthEvery)
	if again := sampled(t, next)[4]; !again.Told || again.Fault == "" {
		t.Errorf("the driver still asks for a reset: %+v", again)
	}
	r.change(func() { r.gpus[4].recovery = int32(lib.GPU_RECOVERY_ACTION_NONE) })
	r.after(healthEvery)
	if reset := sampled(t, next); reset[4].Lasts || reset[4].Fault != "" || !reset[5].Lasts || !reset[6].Lasts {
		t.Errorf("GPU 4 was reset: %+v", reset[4:])
	}
}

func TestNoEvents(t *testing.T) {
	r := newRack(dgxa100.New(), false)
	r.EventSetCreateFunc = func() (lib.EventSet, lib.Return) { return nil, lib.ERROR_NOT_SUPPORTED }
	s := r.open(t, Options{})
	if got := sampled(t, s)[0]; got.Fault != "" {
		t.Errorf("sample %+v", got)
	}
	if n := s.Notes(); len(n) != 1 || !strings.Contains(n[0], "cannot be watched") {
		t.Errorf("notes %q", n)
	}
}

func TestHealth(t *testing.T) {
	r := newRack(dgxa100.New(), false)
	s := r.open(t, Options{})
	sampled(t, s)
	r.change(func() {
		r.gpus[0].ecc = 3
		r.gpus[1].pending = true
		r.gpus[2].failed = true
		r.gpus[3].retire = true
		r.gpus[4].slow = hardwareThermal | powerBrake
		r.gpus[5].slow = lib.ClocksEventReasonSwPowerCap | lib.ClocksEventReasonGpuIdle
	})
	r.after(time.Second)
	if got := sampled(t, s); got[0].ECCErrors != 0 {
		t.Errorf("looked at health again after a second")
	}
	r.after(healthEvery)
	got := sampled(t, s)
	for i, want := range [][]string{
		{"3 uncorrectable memory errors since the driver was loaded"}, {"memory rows wait to be replaced; reset the GPU when convenient"}, nil,
		{"memory pages wait to be retired; reset the GPU when convenient"}, {"slowed down because it is too hot", "slowed down by the power supply"}, nil,
	} {
		if !slices.Equal(got[i].Warnings, want) {
			t.Errorf("GPU %d: %q, want %q", i, got[i].Warnings, want)
		}
		if faulty := got[i].Fault != ""; faulty != (i == 2) {
			t.Errorf("GPU %d: fault %q", i, got[i].Fault)
		}
	}
	if got[0].ECCErrors != 3 {
		t.Errorf("%d errors", got[0].ECCErrors)
	}
	r.change(func() { r.gpus[2].failed, r.gpus[4].slow = false, 0 })
	r.after(healthEvery)
	if got := sampled(t, s); got[2].Fault != "" || len(got[4].Warnings) > 0 {
		t.Errorf("mended: %+v, %+v", got[2], got[4])
	}
}
