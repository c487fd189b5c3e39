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

// rack is one of go-nvml's simulated servers, with what its mocks leave out:
// memory in use, processes, activity, power, health and events.
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

// part is a simulated card, or a MIG instance of one.
type part struct {
	*mock.Device
	rack     *rack
	uuid     string
	instance int
	parts    []*part

	total, reserved, used     uint64
	compute, graphics, shared []lib.ProcessInfo
	rates                     lib.Utilization
	noRates                   bool
	milliwatts                uint32
	celsius                   uint32
	millijoules               uint64
	noCounter                 bool
	ecc                       uint64
	pending, failed           bool
	retire                    bool
	slow                      uint64
	fails                     lib.Return // of every call
	hopper                    bool
	busy                      activity // seconds since ever, times each share
	level                     activity // of now
	broken                    lib.Return
}

// stamp is a simulated GPM sample.
type stamp struct {
	mock.GpmSample
	at   time.Time
	busy activity
}

// newRack equips a simulated server; hopper: its GPUs have GPM.
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
		p := &part{Device: &sd.Device, rack: r, uuid: sd.UUID, instance: -1, total: sd.MemoryInfo.Total, reserved: 500 * mib, hopper: hopper, celsius: 40, milliwatts: 70_000}
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

// lock is held while a test changes what the GPUs show.
func (r *rack) change(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

// after lets time pass: the GPUs work at their level and use energy.
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

// xid has the driver report an error of a card.
func (r *rack) xid(card int, n uint64) {
	r.change(func() {
		r.queue = append(r.queue, lib.EventData{Device: r.Devices[card], EventType: lib.EventTypeXidCriticalError, EventData: n})
	})
}

// metrics works out GPM's metrics, in percent, as the library does.
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

// read guards what a call returns: the error that the part is set to.
func read[T any](p *part, f func() (T, lib.Return)) (T, lib.Return) {
	p.rack.mu.Lock()
	defer p.rack.mu.Unlock()
	if p.fails != lib.SUCCESS {
		var none T
		return none, p.fails
	}
	return f()
}

func (p *part) equip() {
	r, d := p.rack, p.Device
	d.GetUUIDFunc = func() (string, lib.Return) { return p.uuid, lib.SUCCESS }
	d.GetMemoryInfo_v2Func = func() (lib.Memory_v2, lib.Return) {
		if hang := r.stuck(); hang != nil {
			<-hang
		}
		return read(p, func() (lib.Memory_v2, lib.Return) {
			return lib.Memory_v2{Total: p.total, Reserved: p.reserved, Used: p.used, Free: p.total - p.reserved - p.used}, lib.SUCCESS
		})
	}
	d.GetMemoryInfoFunc = func() (lib.Memory, lib.Return) {
		return read(p, func() (lib.Memory, lib.Return) {
			used := p.used + p.reserved // the first version cannot tell them apart
			return lib.Memory{Total: p.total, Used: used, Free: p.total - used}, lib.SUCCESS
		})
	}
	list := func(l *[]lib.ProcessInfo) func() ([]lib.ProcessInfo, lib.Return) {
		return func() ([]lib.ProcessInfo, lib.Return) {
			return read(p, func() ([]lib.ProcessInfo, lib.Return) { return append([]lib.ProcessInfo{}, *l...), lib.SUCCESS })
		}
	}
	d.GetComputeRunningProcessesFunc = list(&p.compute)
	d.GetGraphicsRunningProcessesFunc = list(&p.graphics)
	d.GetMPSComputeRunningProcessesFunc = list(&p.shared)
	d.GetUtilizationRatesFunc = func() (lib.Utilization, lib.Return) {
		return read(p, func() (lib.Utilization, lib.Return) {
			if p.noRates || p.instance >= 0 {
				return lib.Utilization{}, lib.ERROR_NOT_SUPPORTED
			}
			return p.rates, lib.SUCCESS
		})
	}
	d.GetMigModeFunc = func() (int, int, lib.Return) {
		if p.parts != nil {
			return lib.DEVICE_MIG_ENABLE, lib.DEVICE_MIG_ENABLE, lib.SUCCESS
		}
		return lib.DEVICE_MIG_DISABLE, lib.DEVICE_MIG_DISABLE, lib.SUCCESS
	}
	if p.instance < 0 {
		p.equipCard()
	}
}

// equipCard adds what only a card answers.
func (p *part) equipCard() {
	r, d := p.rack, p.Device
	d.GetPowerUsageFunc = func() (uint32, lib.Return) {
		return read(p, func() (uint32, lib.Return) { return p.milliwatts, lib.SUCCESS })
	}
	d.GetTemperatureFunc = func(lib.TemperatureSensors) (uint32, lib.Return) {
		return read(p, func() (uint32, lib.Return) { return p.celsius, lib.SUCCESS })
	}
	d.GetTotalEnergyConsumptionFunc = func() (uint64, lib.Return) {
		return read(p, func() (uint64, lib.Return) {
			if p.noCounter {
				return 0, lib.ERROR_NOT_SUPPORTED
			}
			return p.millijoules, lib.SUCCESS
		})
	}
	d.GetTotalEccErrorsFunc = func(kind lib.MemoryErrorType, counter lib.EccCounterType) (uint64, lib.Return) {
		if kind != lib.MEMORY_ERROR_TYPE_UNCORRECTED || counter != lib.VOLATILE_ECC {
			panic("other errors were asked for")
		}
		return read(p, func() (uint64, lib.Return) { return p.ecc, lib.SUCCESS })
	}
	d.GetRemappedRowsFunc = func() (int, int, bool, bool, lib.Return) {
		return 0, 0, p.pending, p.failed, lib.SUCCESS
	}
	d.GetRetiredPagesPendingStatusFunc = func() (lib.EnableState, lib.Return) {
		if p.retire {
			return lib.FEATURE_ENABLED, lib.SUCCESS
		}
		return lib.FEATURE_DISABLED, lib.SUCCESS
	}
	d.GetCurrentClocksEventReasonsFunc = func() (uint64, lib.Return) {
		return read(p, func() (uint64, lib.Return) { return p.slow, lib.SUCCESS })
	}
	d.GetSupportedEventTypesFunc = func() (uint64, lib.Return) {
		return lib.EventTypeXidCriticalError | lib.EventTypeDoubleBitEccError, lib.SUCCESS
	}
	d.RegisterEventsFunc = func(uint64, lib.EventSet) lib.Return { r.calls["register"]++; return lib.SUCCESS }
	d.GpmQueryDeviceSupportFunc = func() (lib.GpmSupport, lib.Return) {
		if p.hopper {
			return lib.GpmSupport{IsSupportedDevice: 1}, lib.SUCCESS
		}
		return lib.GpmSupport{}, lib.SUCCESS
	}
	sample := func(q *part, s lib.GpmSample) lib.Return {
		_, ret := read(q, func() (struct{}, lib.Return) {
			if q.broken != lib.SUCCESS {
				return struct{}{}, q.broken
			}
			st := s.(*stamp)
			st.at, st.busy = r.now, q.busy
			return struct{}{}, lib.SUCCESS
		})
		return ret
	}
	d.GpmSampleGetFunc = func(s lib.GpmSample) lib.Return { return sample(p, s) }
	d.GpmMigSampleGetFunc = func(instance int, s lib.GpmSample) lib.Return {
		for _, q := range p.parts {
			if q.instance == instance {
				return sample(q, s)
			}
		}
		return lib.ERROR_NOT_FOUND
	}
}

func (r *rack) stuck() chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hang
}

// split switches MIG on for a card and makes instances of so much memory. The
// driver leaves places without an instance between them.
func (r *rack) split(card int, memory ...uint64) []*part {
	p := r.gpus[card]
	for i, m := range memory {
		q := &part{
			Device: &mock.Device{}, rack: r, uuid: fmt.Sprintf("MIG-%d-%d", card, i), instance: 2*i + 1,
			total: m, reserved: 10 * mib, hopper: p.hopper,
		}
		q.equip()
		q.GetNameFunc = func() (string, lib.Return) { return "NVIDIA A100-SXM4-40GB MIG 3g.20gb", lib.SUCCESS }
		q.GetGpuInstanceIdFunc = func() (int, lib.Return) { return q.instance, lib.SUCCESS }
		p.parts = append(p.parts, q)
	}
	p.GetMaxMigDeviceCountFunc = func() (int, lib.Return) { return 7, lib.SUCCESS }
	p.GetMigDeviceHandleByIndexFunc = func(i int) (lib.Device, lib.Return) {
		if i%2 == 1 || i/2 >= len(p.parts) {
			return nil, lib.ERROR_NOT_FOUND
		}
		return p.parts[i/2].Device, lib.SUCCESS
	}
	// A card in MIG mode tells nothing of its own.
	p.GetMemoryInfo_v2Func, p.GetMemoryInfoFunc, p.GetUtilizationRatesFunc, p.GpmSampleGetFunc = nil, nil, nil, nil
	return p.parts
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
