package sharing

import (
	"os"

	"carma/mapper/model"
	"carma/runner/gpu"
	"carma/runner/mps"
)

// MPS configures how tasks share GPUs through NVIDIA's Multi-Process Service.
type MPS struct {
	Groups *mps.Groups
	// Auto lets tasks share GPUs without MPS where MPS does not work.
	Auto bool
	// Threads limits the SMs of a task in percent, or is 0 for no limit.
	Threads int
	// LimitMemory lets MPS limit a task to its grant.
	LimitMemory bool
	// HostIPC puts tasks into the host's IPC namespace, which some drivers use for memory
	// that MPS clients share.
	HostIPC bool
}

// on returns how tasks share a GPU if MPS starts, and why not by MPS.
func (m *MPS) on(d gpu.Device) (how model.Sharing, why string) {
	switch {
	case m.Auto && d.Parent != "":
		return model.SharingTurns, "it is a MIG instance"
	case m.Auto && d.Exclusive:
		return model.SharingAlone, "its compute mode is exclusive-process"
	case m.Groups.Shared:
		return model.SharingMPS, ""
	}
	return model.SharingUsers, ""
}

// mayServe reports whether the daemon may run a control daemon as a user.
func mayServe(uid int) bool { return os.Geteuid() == 0 || os.Geteuid() == uid }
