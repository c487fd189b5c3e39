//go:build cgo

package nvml

import (
	"context"
	"encoding/binary"
	"fmt"

	lib "github.com/NVIDIA/go-nvml/pkg/nvml"
)

// lasts reports whether a card's fault lasts until it is reset.
func (c *card) lasts() bool { return len(c.xids) > 0 || c.kept != "" || c.wants != "" }

// mended clears a card's faults after a reset, whether detected or reported by somebody.
func (c *card) mended() { c.xids, c.kept, c.wants, c.told = nil, "", "", false }

// askRecovery asks the driver for the recovery action of a card. Drivers that report one
// also report its completion: if a driver requested a reset and no longer requests one, a
// reset has happened. If a driver never requested one, this shows nothing.
func (s *Source) askRecovery(c *card) {
	if !s.has("nvmlDeviceGetFieldValues") {
		return
	}
	field := []lib.FieldValue{{FieldId: lib.FI_DEV_GET_GPU_RECOVERY_ACTION}}
	if ret := c.handle.GetFieldValues(field); ret != lib.SUCCESS || lib.Return(field[0].NvmlReturn) != lib.SUCCESS {
		return
	}
	switch lib.DeviceGpuRecoveryAction(binary.NativeEndian.Uint32(field[0].Value[:4])) {
	case lib.GPU_RECOVERY_ACTION_NONE:
		if c.told {
			s.opt.Log.Info().Int("gpu", c.index).Msg("the driver wants no reset of the GPU any more: it was reset")
			c.mended()
		}
	case lib.GPU_RECOVERY_ACTION_GPU_RESET, lib.GPU_RECOVERY_ACTION_DRAIN_AND_RESET, lib.GPU_RECOVERY_ACTION_BUS_RESET:
		c.told, c.wants = true, fmt.Sprintf("the driver wants it to be reset; to mend it: stop the daemon, nvidia-smi --gpu-reset -i %d, start it again", c.index)
	case lib.GPU_RECOVERY_ACTION_NODE_REBOOT, lib.GPU_RECOVERY_ACTION_SYSTEM_REBOOT:
		c.told, c.wants = true, "the driver wants the machine to be restarted, because of this GPU"
	}
}

// Remember implements gpu.Remembering. A MIG instance shares the fault of its card.
func (s *Source) Remember(ctx context.Context, uuid, fault string, told bool) error {
	return s.withCard(ctx, uuid, func(c *card) { c.kept, c.told = fault, told })
}

// Forgive implements gpu.Remembering.
func (s *Source) Forgive(ctx context.Context, uuid string) error {
	return s.withCard(ctx, uuid, (*card).mended)
}

// withCard calls a function with a GPU's card on the worker. It ignores a missing GPU.
func (s *Source) withCard(ctx context.Context, uuid string, do func(*card)) error {
	_, err := ask(ctx, s.worker, func() struct{} {
		for _, u := range s.units {
			if u.device.UUID == uuid {
				do(u.card)
			}
		}
		return struct{}{}
	})
	return err
}
