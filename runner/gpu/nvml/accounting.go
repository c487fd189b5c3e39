//go:build cgo

package nvml

import (
	"context"
	"slices"

	"carma/internal/units"

	lib "github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Accounted implements [gpu.Accounting] with NVML's accounting mode
// (nvmlDeviceGetAccountingStats). The mode is off by default; nvidia-smi -am 1 turns it
// on. MIG instances have no such records.
func (s *Source) Accounted(ctx context.Context, uuid string, pid int) (units.Bytes, bool) {
	type answer struct {
		most units.Bytes
		ok   bool
	}
	a, err := ask(ctx, s.worker, func() (a answer) {
		a.most, a.ok = s.accounted(uuid, pid)
		return a
	})
	return a.most, err == nil && a.ok
}

func (s *Source) accounted(uuid string, pid int) (units.Bytes, bool) {
	i := slices.IndexFunc(s.units, func(u *unit) bool { return u.device.UUID == uuid })
	if i < 0 || pid <= 0 || s.down != "" || !s.has("nvmlDeviceGetAccountingMode") || !s.has("nvmlDeviceGetAccountingStats") {
		return 0, false
	}
	u := s.units[i]
	if mode, ret := u.handle.GetAccountingMode(); ret != lib.SUCCESS || mode != lib.FEATURE_ENABLED {
		return 0, false
	}
	stats, ret := u.handle.GetAccountingStats(uint32(pid))
	if ret != lib.SUCCESS || stats.MaxMemoryUsage == unknown || stats.MaxMemoryUsage > uint64(u.device.Capacity) {
		return 0, false
	}
	return units.Bytes(stats.MaxMemoryUsage), true
}
