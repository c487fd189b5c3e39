package containers

import (
	"fmt"
	"time"
)

// GPUMemory contains the measurements of a run's GPU memory on the GPU where it used the
// most. All amounts are in bytes. The zero value means no measurement.
type GPUMemory struct {
	// Readings is the number of samples between the start and the end, Span the time that
	// they cover.
	Readings int
	Span     time.Duration
	// Seen is set if a sample showed memory of the run.
	Seen bool
	// Peak is the highest observed use.
	Peak int64
	// Exact is set if Peak is the driver's own record of the processes (NVML accounting),
	// so that no higher use can lie between two samples.
	Exact bool
	// AtError is set if a sample was taken after the program had printed its error and
	// before it ended.
	AtError bool
	// Grant is the memory allocated to the task. Limit is the driver's limit for it, or 0.
	Grant, Limit int64
	// CardFull is set if more than 95 % of the memory of one of the run's GPUs was in use
	// at the end.
	CardFull bool
	// Neighbours names the neighbour that used more than its grant, or is empty.
	Neighbours string
}

// MemoryState classifies a measurement with regard to a failed allocation of GPU memory.
type MemoryState string

// The states.
const (
	MemoryUnknown   MemoryState = "unknown"
	MemoryUntouched MemoryState = "untouched" // the run had no memory on its GPUs at any time
	MemoryBelow     MemoryState = "below"     // it used less than half of its grant, and the card had room
	MemoryNear      MemoryState = "near"      // it was at its grant or limit, or the card was full
)

const (
	// untouchedReadings is the least number of samples, all without memory, after which a
	// run counts as untouched.
	untouchedReadings = 5
	// untouchedSpan is the least time that these samples cover.
	untouchedSpan = 5 * time.Second
	// nearGrant and belowGrant are shares of the grant.
	nearGrant, belowGrant = 0.9, 0.5
	// nearLimit is the share of a driver's limit at which an allocation may fail.
	nearLimit = 0.9
)

// State returns the measured state of memory at an allocation that failed; request is its
// size in bytes, or 0 if unknown.
//
// Samples are a second apart, and an allocation can fail between two. So a run is below
// its grant only if its peak is exact, or if a sample was taken at the time of the error.
// A run shorter than two samples is unknown.
func (m GPUMemory) State(request int64) MemoryState {
	wanted := m.Peak + request
	switch {
	case m.CardFull,
		m.Limit > 0 && m.Seen && float64(wanted) >= nearLimit*float64(m.Limit),
		m.Grant > 0 && m.Seen && float64(wanted) >= nearGrant*float64(m.Grant):
		return MemoryNear
	case m.Readings < 2:
		return MemoryUnknown
	case !m.Seen && m.Readings >= untouchedReadings && m.Span >= untouchedSpan:
		return MemoryUntouched
	case m.Seen && (m.Exact || m.AtError) && m.Grant > 0 && float64(wanted) < belowGrant*float64(m.Grant):
		return MemoryBelow
	}
	return MemoryUnknown
}

// text describes the measurement.
func (m GPUMemory) text(state MemoryState) string {
	switch {
	case state == MemoryUntouched:
		return fmt.Sprintf("%d samples show no memory of it on its GPUs", m.Readings)
	case m.CardFull:
		return fmt.Sprintf("the GPU's memory was full; its own peak was %s, %s allocated", gib(m.Peak), gib(m.Grant))
	case !m.Seen:
		return "no sample shows its memory"
	}
	text := fmt.Sprintf("peak %s, %s allocated", gib(m.Peak), gib(m.Grant))
	if m.Limit > 0 {
		text += fmt.Sprintf(", limit %s", gib(m.Limit))
	}
	if !m.Exact && !m.AtError && state == MemoryUnknown {
		text += "; the use at the end is not known"
	}
	return text
}
