// Package gpu watches the GPUs of this machine: which there are, how much
// memory each has in use and by whom, how busy it is and whether it is well.
//
// It decides nothing. A [Source] is one way to look (a simulated server; NVML
// on a real one); the monitor of package runner turns its samples into
// mapper.Sampled events.
package gpu

import (
	"context"

	"carma/mapper/units"

	"carma/mapper"
)

// Source is one set of GPUs. Methods may be called from several goroutines.
type Source interface {
	// Name is shown to users: "sim:dgx-station-a100".
	Name() string
	// GPUs lists the devices; the order and the UUIDs never change while the
	// source is open.
	GPUs(ctx context.Context) ([]Device, error)
	// Sample reads all GPUs once, in the order of GPUs. A call that takes
	// longer than the context allows returns its error and no samples.
	Sample(ctx context.Context) ([]Sample, error)
	Close() error
}

// Owner tells whose a process is, by its number in the daemon's namespace. ok
// is false for a process that runs in none of carma's containers.
type Owner func(pid int) (task mapper.TaskID, attempt int, ok bool)

// Attributing is a Source that sees processes and must be told whose they are.
// Without an Owner all are foreign. SetOwner is called before the first Sample.
type Attributing interface {
	SetOwner(Owner)
}

// Noting is a Source that has something to say about how it reads: what is
// missing here, each a sentence for the administrator.
type Noting interface {
	Notes() []string
}

// Where the activity of a GPU may come from.
const (
	// MetricsGPM is the GPU's performance monitoring, by NVML: Hopper and later.
	MetricsGPM = "gpm"
	// MetricsDCGM is the page of a dcgm-exporter.
	MetricsDCGM = "dcgm-exporter"
	// MetricsUtilization is NVML's GPU utilization, which is coarse.
	MetricsUtilization = "utilization"
	// MetricsNone: nothing tells. A GPU with processes counts as fully active.
	MetricsNone = "none"
)

// Device is a GPU as its driver describes it: a card, or a MIG instance.
type Device struct {
	UUID     string      `json:"uuid"`
	Index    int         `json:"index"`
	Model    string      `json:"model"`
	Capacity units.Bytes `json:"capacity"`
	// Parent is the UUID of the card that a MIG instance is a part of; else
	// empty.
	Parent string `json:"parent,omitempty"`
}

// Sample is what one GPU shows at one moment.
type Sample struct {
	UUID string
	// Used is the memory in use on the whole device.
	Used units.Bytes
	// SMACT, SMOCC and DRAMA are SM activity, SM occupancy and DRAM activity,
	// 0 to 1, over the last sampling interval.
	SMACT, SMOCC, DRAMA float64
	// Metrics is where these come from, one of the Metrics constants; empty on
	// a simulated GPU. Coarse: they are upper bounds from the share of time in
	// which any kernel ran, not a measure of how busy the SMs were.
	Metrics string
	Coarse  bool
	// TemperatureC is in degrees Celsius; 0 when unknown.
	TemperatureC float64
	// ECCErrors are the uncorrectable memory errors since the driver was loaded.
	ECCErrors uint64
	// PowerW is the draw in watts.
	PowerW float64
	// EnergyJ is a counter in joules since the source was opened.
	EnergyJ float64
	// Processes are those that hold memory on the device.
	Processes []Process
	// Fault is empty when the device is well, else what is wrong with it and
	// what to do. It stays the same as long as the same is wrong.
	Fault string
	// Warnings are what an administrator should know of a device that is well
	// enough to work on.
	Warnings []string
}

// Process is one holder of GPU memory.
type Process struct {
	// PID in the daemon's namespace; 0 when unknown.
	PID int
	// Task and Attempt name carma's own; Task is 0 for a foreign process.
	Task    mapper.TaskID
	Attempt int
	Used    units.Bytes
	// Peak is the highest Used since the process began, where the source can
	// tell; else 0.
	Peak units.Bytes
}
