package model

import "carma/internal/units"

// GPUsCordoned cordons GPUs: they keep their tasks and get no new ones until they are
// uncordoned. A cordon survives restarts, and a GPU that disappears and returns. To
// uncordon a GPU also clears its fault: somebody has inspected it.
type GPUsCordoned struct {
	At   units.Instant `json:"at"`
	GPUs []GPUID       `json:"gpus"`
	// Closure is the cordon, or nil to uncordon.
	Closure *Cordon `json:"closure,omitempty"`
}

func (e GPUsCordoned) When() units.Instant { return e.At }

func (GPUsCordoned) Kind() string { return "gpus-closed" }

func (GPUsCordoned) about() TaskID { return 0 }

// DeviceState is the reason why the programs of an attempt cannot open the devices of its GPUs.
type DeviceState string

// The states.
const (
	// DevicesDenied: the device rules of the container's control group forbid it.
	DevicesDenied DeviceState = "denied"
	// DevicesGone: the device nodes were removed, or no driver serves them.
	DevicesGone DeviceState = "gone"
)

// DevicesChecked reports that the programs of a running attempt can no longer open the
// devices of its GPUs, or can open them again. It is for the record and leads to no
// decision: a program that has a GPU open keeps using it.
type DevicesChecked struct {
	At      units.Instant `json:"at"`
	Task    TaskID        `json:"task"`
	Attempt int           `json:"attempt"`
	// State is empty if all devices can be opened.
	State DeviceState `json:"state,omitempty"`
	// GPUs are the GPUs whose devices cannot be opened, if known.
	GPUs []GPUID `json:"gpus,omitempty"`
}

func (e DevicesChecked) When() units.Instant { return e.At }

func (DevicesChecked) Kind() string { return "devices-checked" }

func (e DevicesChecked) about() TaskID { return e.Task }

// GPUsFound lists the GPUs of the machine. A GPU missing from the list keeps its tasks
// and gets no new ones.
type GPUsFound struct {
	At   units.Instant `json:"at"`
	GPUs []GPUInfo     `json:"gpus"`
}

// Sampled carries the monitor's readings of some or all GPUs.
type Sampled struct {
	At   units.Instant `json:"at"`
	GPUs []GPUSample   `json:"gpus"`
	// Hosts are the machines whose memory is allocated by carma.
	Hosts []HostSample `json:"hosts,omitempty"`
}

func (e GPUsFound) When() units.Instant { return e.At }

func (e Sampled) When() units.Instant { return e.At }

func (GPUsFound) about() TaskID { return 0 }

func (Sampled) about() TaskID { return 0 }

func (GPUsFound) Kind() string { return "gpus-found" }

func (Sampled) Kind() string { return "sampled" }

// GPUsReset says that GPUs were reset, which ends their persistent faults. Another boot
// of the machine ends such a fault too, and so does uncordoning the GPU ([GPUsCordoned]).
type GPUsReset struct {
	At   units.Instant `json:"at"`
	GPUs []GPUID       `json:"gpus"`
}

func (e GPUsReset) When() units.Instant { return e.At }

func (GPUsReset) Kind() string { return "gpus-reset" }

func (GPUsReset) about() TaskID { return 0 }

// HostsFound lists the memory and processors of the machines. A machine that is not in
// the list has no limits.
type HostsFound struct {
	At    units.Instant `json:"at"`
	Hosts []HostInfo    `json:"hosts"`
}

func (e HostsFound) When() units.Instant { return e.At }

func (HostsFound) Kind() string { return "hosts-found" }

func (HostsFound) about() TaskID { return 0 }

// HelpersBooked sets the allocation for the helpers of a suite on a machine. Helpers are
// in no queue: the program that starts them asks [State.HelpersFit] first. Zero memory
// and CPUs end the allocation.
type HelpersBooked struct {
	At    units.Instant `json:"at"`
	Node  string        `json:"node,omitempty"`
	Suite string        `json:"suite"` // names it among all suites
	// Memory is allocated, and CPUs thousandths of a processor.
	Memory units.Bytes `json:"memory,omitempty"`
	CPUs   int64       `json:"cpus,omitempty"`
}

func (e HelpersBooked) When() units.Instant { return e.At }

func (HelpersBooked) Kind() string { return "helpers-booked" }

func (HelpersBooked) about() TaskID { return 0 }

// SuspendedOutOfBand says that the container of an attempt that is thought to run was
// found suspended: a journal restored from an older copy does not contain the suspension.
// The attempt counts as suspended from now on, and resumes when there is room. The event
// is ignored for a task that does not run. It is also ignored for a task on several GPUs
// that has not vacated them: the driver suspends no such task, so somebody else has
// stopped it.
type SuspendedOutOfBand struct {
	At      units.Instant `json:"at"`
	Task    TaskID        `json:"task"`
	Attempt int           `json:"attempt"`
	// Left: its program has vacated its GPUs, see [VacatesOnRequest].
	Left bool `json:"left,omitempty"`
}

func (e SuspendedOutOfBand) When() units.Instant { return e.At }

func (SuspendedOutOfBand) Kind() string { return "found-away" }

func (e SuspendedOutOfBand) about() TaskID { return e.Task }
