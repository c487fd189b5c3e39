// Package gpu describes the GPUs of this machine: the list of them, the memory in use on
// each and its processes, its activity and its faults.
//
// It makes no decisions. A [Source] reads the GPUs of a simulated server, or real GPUs
// through NVML. The monitor of package runner turns its samples into model.Sampled
// events.
package gpu

import (
	"context"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

// Source is one set of GPUs. Methods may be called from several goroutines.
type Source interface {
	// Name returns the name shown to users: "sim:dgx-station-a100".
	Name() string
	// GPUs lists the devices. The order and the UUIDs never change while the source is open,
	// unless it is [Coming].
	GPUs(ctx context.Context) ([]Device, error)
	// Sample reads all GPUs once, in the order of GPUs. If ctx ends first, it
	// returns the error of ctx and no samples.
	Sample(ctx context.Context) ([]Sample, error)
	Close() error
}

// Owner returns the task and attempt of a process, by its number in the daemon's PID
// namespace. ok is false for a process in none of carma's containers.
type Owner func(pid int) (task model.TaskID, attempt int, ok bool)

// Attributing is a Source that reports processes and needs an Owner to find their tasks.
// Without an Owner all processes are foreign. Call SetOwner before the first Sample.
type Attributing interface {
	SetOwner(Owner)
}

// Noting is a Source with notes on missing parts that limit its readings. Each note is a
// sentence for the administrator.
type Noting interface {
	Notes() []string
}

// Remembering is a Source that detects the reset of a broken GPU. Its findings last until
// the Source is closed. The daemon keeps them longer and passes them to the next Source.
type Remembering interface {
	// Remember informs the Source that a GPU was broken when the last daemon ended, with the
	// fault. told is set if the driver had requested a reset. Samples have that fault until
	// it is fixed.
	Remember(ctx context.Context, uuid, fault string, told bool) error
	// Forgive informs the Source that somebody has fixed a GPU, or wants to use it despite
	// the fault.
	Forgive(ctx context.Context, uuid string) error
}

// Coming is a Source with GPUs that appear and disappear while it is open. It may have none
// at the beginning. Samples of GPUs that it does not list now are ignored.
type Coming interface {
	// News receives a token when GPUs lists other devices than before.
	News() <-chan struct{}
}

// Lagging is a Source with delayed samples, from other machines.
type Lagging interface {
	// CatchUp waits until there are samples of these GPUs from after end, by the clock of
	// their machine, or until ctx ends.
	CatchUp(ctx context.Context, uuids []string, end time.Time)
}

// Sharer is a Source that itself decides how tasks share its GPUs.
type Sharer interface {
	Sharing() model.Sharing
}

// The sources of a GPU's activity.
const (
	// MetricsGPM is the GPU's performance monitoring, through NVML: Hopper and later.
	MetricsGPM = "gpm"
	// MetricsDCGM is the metrics of a dcgm-exporter.
	MetricsDCGM = "dcgm-exporter"
	// MetricsUtilization is NVML's GPU utilization, which is coarse.
	MetricsUtilization = "utilization"
	// MetricsNone means that there is no source. A GPU with processes then counts as
	// fully active.
	MetricsNone = "none"
)

// Device is a GPU as its driver describes it: a card, or a MIG instance.
type Device struct {
	UUID     string      `json:"uuid"`
	Index    int         `json:"index"`
	Model    string      `json:"model"`
	Capacity units.Bytes `json:"capacity"`
	// Parent is the UUID of the card of a MIG instance, or empty.
	Parent string `json:"parent,omitempty"`
	// Exclusive is set if only one process at a time may use the GPU (compute mode
	// exclusive-process).
	Exclusive bool `json:"exclusive,omitempty"`
	// Link identifies the cards that NVLink connects with this card, by the lowest index
	// among them. Socket is the card's NUMA node. Each is empty if it does not exist or is
	// unknown.
	Link   string `json:"link,omitempty"`
	Socket string `json:"socket,omitempty"`
	// Sharing is the way in which tasks share the GPU. It is valid if Shares is set;
	// otherwise the daemon determines it.
	Sharing model.Sharing `json:"sharing,omitempty"`
	Shares  bool          `json:"shares,omitempty"`
	// Node is the GPU's machine in a cluster, and Boot that machine's boot. Both are empty
	// on this machine.
	Node string `json:"node,omitempty"`
	Boot string `json:"boot,omitempty"`
}

// Sample is one reading of one GPU.
type Sample struct {
	UUID string
	// Used is the memory in use on the whole device.
	Used units.Bytes
	// SMACT, SMOCC and DRAMA are SM activity, SM occupancy and DRAM activity,
	// 0 to 1, over the last sampling interval.
	SMACT, SMOCC, DRAMA float64
	// Metrics is the origin of these values, one of the Metrics constants, and empty on a
	// simulated GPU. Coarse is set if the values are upper bounds from the share of time
	// in which any kernel ran, and not measurements of the SMs' activity.
	Metrics string
	Coarse  bool
	// TemperatureC is the temperature in degrees Celsius, or 0 if unknown.
	TemperatureC float64
	// ECCErrors are the uncorrectable memory errors since the driver was loaded.
	ECCErrors uint64
	// PowerW is the draw in watts.
	PowerW float64
	// EnergyJ is a counter in joules since the source was opened.
	EnergyJ float64
	// CounterJ is the card's own counter in joules, which keeps counting until the driver is
	// reloaded. It is 0 if no counter belongs to this GPU alone.
	CounterJ float64
	// Processes lists the processes with memory on the device.
	Processes []Process
	// ClientsTold is set if the driver has reported which processes are clients of MPS.
	ClientsTold bool
	// Fault is empty if the device is healthy, otherwise it describes the problem and its
	// fix. The text stays the same as long as the fault does.
	Fault string
	// Lasts is set if the fault lasts until the GPU is reset, and this source would detect
	// the reset. Told is set if the driver itself reports that the GPU must be reset.
	Lasts, Told bool
	// Warnings are for an administrator, about a device that can still be used.
	Warnings []string
}

// Accounting is a source with a driver that records the highest memory use of each process
// (NVML's accounting mode), also after the process has ended.
type Accounting interface {
	// Accounted returns the highest memory use of a process on a GPU in bytes, or false
	// if the mode is off or the driver does not know the process.
	Accounted(ctx context.Context, uuid string, pid int) (units.Bytes, bool)
}

// Process is a process with GPU memory.
type Process struct {
	// PID is the number in the daemon's PID namespace, or 0 if unknown.
	PID int
	// Task and Attempt identify the task of a carma process. Task is 0 for a foreign
	// process.
	Task    model.TaskID
	Attempt int
	Used    units.Bytes
	// Peak is the highest Used since the process began, or 0 if unknown.
	Peak units.Bytes
	// Active is the share of time in which a kernel of the process ran, 0 to 1, since
	// the last sample or over the driver's own interval. It bounds the SM activity
	// that the process causes. It is known only if Timed.
	Active float64
	Timed  bool
	// Client is set if the process is a client of MPS. It is valid if ClientsTold is set in
	// the sample.
	Client bool
}
