//go:build cgo

package nvml

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	lib "github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
)

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
	recovery                  int32      // the driver's recovery action; below 0 if not reported
	fails                     lib.Return // of every call
	hopper                    bool
	joined                    []*part  // by NVLink
	busy                      activity // sums over all seconds of each share of activity
	level                     activity // of now
	broken                    lib.Return
	times                     []lib.ProcessUtilizationSample
	timeless                  lib.Return // of asking for these
}

// stamp is a simulated GPM sample.
type stamp struct {
	mock.GpmSample
	at   time.Time
	busy activity
}

// read returns the part's configured error, else the result of f.
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
	d.GetComputeModeFunc = func() (lib.ComputeMode, lib.Return) { return lib.COMPUTEMODE_DEFAULT, lib.SUCCESS }
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
			used := p.used + p.reserved // the first version reports the sum
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

// equipCard adds the functions that only a card answers.
func (p *part) equipCard() {
	r, d := p.rack, p.Device
	d.GetP2PStatusFunc = func(other lib.Device, by lib.GpuP2PCapsIndex) (lib.GpuP2PStatus, lib.Return) {
		uuid, _ := other.GetUUID()
		if by == lib.P2P_CAPS_INDEX_NVLINK && slices.ContainsFunc(p.joined, func(o *part) bool { return o.uuid == uuid }) {
			return lib.P2P_STATUS_OK, lib.SUCCESS
		}
		return lib.P2P_STATUS_NOT_SUPPORTED, lib.SUCCESS
	}
	d.GetPowerUsageFunc = func() (uint32, lib.Return) {
		return read(p, func() (uint32, lib.Return) { return p.milliwatts, lib.SUCCESS })
	}
	d.GetTemperatureFunc = func(lib.TemperatureSensors) (uint32, lib.Return) {
		return read(p, func() (uint32, lib.Return) { return p.celsius, lib.SUCCESS })
	}
	d.GetProcessUtilizationFunc = func(after uint64) (out []lib.ProcessUtilizationSample, ret lib.Return) {
		return read(p, func() (out []lib.ProcessUtilizationSample, ret lib.Return) {
			if p.timeless != lib.SUCCESS {
				return nil, p.timeless
			}
			for _, s := range p.times {
				if s.TimeStamp > after {
					out = append(out, s)
				}
			}
			if len(out) == 0 {
				return nil, lib.ERROR_NOT_FOUND
			}
			return out, lib.SUCCESS
		})
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
	d.GetFieldValuesFunc = func(values []lib.FieldValue) lib.Return {
		_, ret := read(p, func() (struct{}, lib.Return) {
			v := &values[0]
			if v.FieldId != lib.FI_DEV_GET_GPU_RECOVERY_ACTION || len(values) != 1 {
				panic("another field was asked for")
			}
			if v.NvmlReturn = uint32(lib.SUCCESS); p.recovery < 0 {
				v.NvmlReturn = uint32(lib.ERROR_NOT_SUPPORTED)
			}
			binary.NativeEndian.PutUint32(v.Value[:], uint32(max(0, p.recovery)))
			return struct{}{}, lib.SUCCESS
		})
		return ret
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

// split switches MIG on for a card and makes instances with the given memory.
// The driver leaves places without an instance between them.
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
	// A card in MIG mode reports nothing of its own.
	p.GetMemoryInfo_v2Func, p.GetMemoryInfoFunc, p.GetUtilizationRatesFunc, p.GpmSampleGetFunc = nil, nil, nil, nil
	return p.parts
}
