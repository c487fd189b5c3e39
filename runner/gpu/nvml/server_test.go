//go:build cgo

package nvml

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"carma/runner/gpu"

	lib "github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"
	"github.com/rs/zerolog"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

// rack is one of go-nvml's simulated servers, with the parts that its mocks
// leave out: memory in use, processes, activity, power, health and events.
type rack struct {
	*server.Server
	mu    sync.Mutex
	now   time.Time
	gpus  []*part
	set   *mock.EventSet
	queue []lib.EventData
	calls map[string]int
	gone  map[string]bool // symbols that the library lacks
	init  lib.Return
	// hang makes every reading of memory wait until it is closed.
	hang chan struct{}
}

// newRack equips a simulated server; hopper means that its GPUs have GPM.
func newRack(s *server.Server, hopper bool) *rack {
	r := &rack{Server: s, now: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), calls: map[string]int{}, gone: map[string]bool{}}
	s.InitFunc = func() lib.Return { r.calls["init"]++; return r.init }
	s.ShutdownFunc = func() lib.Return { r.calls["shutdown"]++; return lib.SUCCESS }
	s.LookupSymbolFunc = func(name string) error {
		if r.gone[name] {
			return fmt.Errorf("symbol %q not found", name)
		}
		return nil
	}
	s.GpmSampleAllocFunc = func() (lib.GpmSample, lib.Return) {
		r.calls["alloc"]++
		st := &stamp{}
		st.FreeFunc = func() lib.Return { r.calls["free"]++; return lib.SUCCESS }
		return st, lib.SUCCESS
	}
	s.GpmMetricsGetFunc = r.metrics
	r.set = &mock.EventSet{
		WaitFunc: r.next,
		FreeFunc: func() lib.Return { return lib.SUCCESS },
	}
	s.EventSetCreateFunc = func() (lib.EventSet, lib.Return) { return r.set, lib.SUCCESS }
	for _, d := range s.Devices {
		sd := d.(*server.Device)
		p := &part{Device: &sd.Device, rack: r, uuid: sd.UUID, instance: -1, total: sd.MemoryInfo.Total, reserved: 500 * mib, hopper: hopper, celsius: 40, milliwatts: 70_000, recovery: -1}
		p.equip()
		r.gpus = append(r.gpus, p)
	}
	s.DeviceGetHandleByUUIDFunc = func(uuid string) (lib.Device, lib.Return) {
		for i, p := range r.gpus {
			if p.uuid == uuid {
				return s.Devices[i], lib.SUCCESS
			}
			for _, q := range p.parts {
				if q.uuid == uuid {
					return q.Device, lib.SUCCESS
				}
			}
		}
		return nil, lib.ERROR_NOT_FOUND
	}
	return r
}

// change changes the readings of the GPUs, with the lock held.
func (r *rack) change(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// after advances time: the GPUs work at their level and use energy.
func (r *rack) after(d time.Duration) {
	r.change(func() {
		r.now = r.now.Add(d)
		for _, p := range r.gpus {
			p.millijoules += uint64(float64(p.milliwatts) * d.Seconds())
			for _, q := range append([]*part{p}, p.parts...) {
				q.busy.smact += q.level.smact * d.Seconds()
				q.busy.smocc += q.level.smocc * d.Seconds()
				q.busy.drama += q.level.drama * d.Seconds()
			}
		}
	})
}

func (r *rack) next(ms uint32) (lib.EventData, lib.Return) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if ms != 0 {
		panic("an event was waited for")
	}
	if len(r.queue) == 0 {
		return lib.EventData{}, lib.ERROR_TIMEOUT
	}
	ev := r.queue[0]
	r.queue = r.queue[1:]
	return ev, lib.SUCCESS
}

// xid makes the driver report an error of a card.
func (r *rack) xid(card int, n uint64) {
	r.change(func() {
		r.queue = append(r.queue, lib.EventData{Device: r.Devices[card], EventType: lib.EventTypeXidCriticalError, EventData: n})
	})
}

// metrics computes GPM's metrics, in percent, as the library does.
func (r *rack) metrics(m *lib.GpmMetricsGetType) lib.Return {
	a, b := m.Sample1.(*stamp), m.Sample2.(*stamp)
	d := b.at.Sub(a.at).Seconds()
	if d < 0.1 {
		return lib.ERROR_INVALID_ARGUMENT
	}
	for i := range m.NumMetrics {
		v := &m.Metrics[i]
		switch lib.GpmMetricId(v.MetricId) {
		case lib.GPM_METRIC_SM_UTIL:
			v.Value = 100 * (b.busy.smact - a.busy.smact) / d
		case lib.GPM_METRIC_SM_OCCUPANCY:
			v.Value = 100 * (b.busy.smocc - a.busy.smocc) / d
		case lib.GPM_METRIC_DRAM_BW_UTIL:
			v.Value = 100 * (b.busy.drama - a.busy.drama) / d
		default:
			v.NvmlReturn = uint32(lib.ERROR_NOT_SUPPORTED)
		}
	}
	return lib.SUCCESS
}

func (r *rack) stuck() chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hang
}

// open opens a rack's GPUs; the test closes them.
func (r *rack) open(t *testing.T, opt Options) *Source {
	t.Helper()
	opt.Now = func() time.Time { r.mu.Lock(); defer r.mu.Unlock(); return r.now }
	opt.Log = zerolog.Nop()
	s, err := Open(t.Context(), r.Server, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func sampled(t *testing.T, s *Source) []gpu.Sample {
	t.Helper()
	got, err := s.Sample(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func devices(t *testing.T, s *Source) []gpu.Device {
	t.Helper()
	got, err := s.GPUs(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return got
}
