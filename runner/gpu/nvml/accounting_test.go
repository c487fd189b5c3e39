//go:build cgo

package nvml

import (
	"testing"

	lib "github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"

	"carma/internal/units"
	"carma/runner/gpu"
)

var _ gpu.Accounting = (*Source)(nil)

// TestAccounted: the driver's record of a process is used if accounting mode is on, except for
// an unknown process or an impossible figure.
func TestAccounted(t *testing.T) {
	r := newRack(dgxh100.New(), true)
	card := r.gpus[2]
	mode, most := lib.FEATURE_ENABLED, uint64(9*units.GiB)
	card.GetAccountingModeFunc = func() (lib.EnableState, lib.Return) { return mode, lib.SUCCESS }
	card.GetAccountingStatsFunc = func(pid uint32) (lib.AccountingStats, lib.Return) {
		if pid != 4711 {
			return lib.AccountingStats{}, lib.ERROR_NOT_FOUND
		}
		return lib.AccountingStats{MaxMemoryUsage: most}, lib.SUCCESS
	}
	s := r.open(t, Options{})
	if got, ok := s.Accounted(t.Context(), card.uuid, 4711); !ok || got != 9*units.GiB {
		t.Errorf("%s, %v", got, ok)
	}
	if got, ok := s.Accounted(t.Context(), card.uuid, 4712); ok {
		t.Errorf("of an unknown process: %s", got)
	}
	if got, ok := s.Accounted(t.Context(), "GPU-unknown", 4711); ok {
		t.Errorf("of an unknown GPU: %s", got)
	}
	most = unknown
	if got, ok := s.Accounted(t.Context(), card.uuid, 4711); ok {
		t.Errorf("of a figure that is not available: %s", got)
	}
	mode, most = lib.FEATURE_DISABLED, uint64(9*units.GiB)
	if got, ok := s.Accounted(t.Context(), card.uuid, 4711); ok {
		t.Errorf("with the mode off: %s", got)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
