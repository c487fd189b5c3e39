// Package gpu watches the GPUs of this machine: which there are, how much
// memory each has in use and by whom, how busy it is and whether it is well.
//
// It decides nothing. A [Source] is one way to look (a simulated server; NVML
// on a real one); the monitor of package runner turns its samples into
// mapper.Sampled events.
package gpu

import (
	"context"

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

// Device is a GPU as its driver describes it.
type Device struct {
	UUID     string       `json:"uuid"`
	Index    int          `json:"index"`
	Model    string       `json:"model"`
	Capacity mapper.Bytes `json:"capacity"`
}

// Sample is what one GPU shows at one moment.
type Sample struct {
	UUID string
	// Used is the memory in use on the whole device.
	Used mapper.Bytes
	// SMACT, SMOCC and DRAMA are SM activity, SM occupancy and DRAM activity,
	// 0 to 1, over the last sampling interval.
	SMACT, SMOCC, DRAMA float64
	// PowerW is the draw in watts.
	PowerW float64
	// EnergyJ is a counter in joules since the source was opened.
	EnergyJ float64
	// Processes are those that hold memory on the device.
	Processes []Process
	// Fault is empty when the device is well, else what is wrong with it.
	Fault string
}

// Process is one holder of GPU memory.
type Process struct {
	// PID in the daemon's namespace; 0 when unknown.
	PID int
	// Task and Attempt name carma's own; Task is 0 for a foreign process.
	Task    mapper.TaskID
	Attempt int
	Used    mapper.Bytes
	// Peak is the highest Used since the process began, where the source can
	// tell; else 0.
	Peak mapper.Bytes
}
