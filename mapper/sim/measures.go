package sim

import (
	"slices"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
)

// Metrics contains the measures of a replay: of its tasks, and of its GPUs over the
// makespan.
type Metrics struct {
	Summary
	// MeanSMACT and MeanMemory are means over time and over all GPUs.
	MeanSMACT  float64
	MeanMemory units.Bytes
	// LostGPUTime is the running time of failed attempts, by GPU.
	LostGPUTime time.Duration
	// EnergyJ is the energy used by all GPUs, in joules; IdleJ the part of it used
	// without a task on them.
	EnergyJ, IdleJ float64
	// UrgentTasks is the number of tasks of high priority. MeanUrgent and P95Urgent are
	// the times for which these were queued, starting or suspended.
	UrgentTasks           int
	MeanUrgent, P95Urgent time.Duration
	// Drained is the time until a drained GPU had no task.
	Drained time.Duration
	// LowerBound is a makespan that no schedule can beat.
	LowerBound time.Duration
}

// Ratios contains measures relative to another replay, or 0 where the other replay's
// measure is 0.
type Ratios struct {
	Makespan, MeanJCT, P95JCT, MeanWaiting, Energy float64
}

// RatioTo returns the measures relative to another replay of the same tasks.
func (m Metrics) RatioTo(first Metrics) Ratios {
	ratio := func(a, b float64) float64 {
		if b == 0 {
			return 0
		}
		return a / b
	}
	return Ratios{
		Makespan:    ratio(m.Makespan.Seconds(), first.Makespan.Seconds()),
		MeanJCT:     ratio(m.MeanJCT.Seconds(), first.MeanJCT.Seconds()),
		P95JCT:      ratio(m.P95JCT.Seconds(), first.P95JCT.Seconds()),
		MeanWaiting: ratio(m.MeanWaiting.Seconds(), first.MeanWaiting.Seconds()),
		Energy:      ratio(m.EnergyJ, first.EnergyJ),
	}
}

func (e *engine) metrics() Metrics {
	records := make([]Record, len(e.results))
	for i := range e.results {
		records[i] = e.results[i].Record
	}
	m := Metrics{Summary: Summarize(records), LowerBound: e.lowerBound(), Drained: e.drain.took}
	ofTasks := 0.0
	for i := range e.results {
		ofTasks += e.results[i].EnergyJ
		m.LostGPUTime += e.results[i].Record.Lifetimes().Lost * time.Duration(e.results[i].Task.GPUs)
	}
	m.urgent(e.results)
	var smact, memory float64
	for _, d := range e.devices {
		smact += d.sum.SMACT
		memory += d.memory
		m.EnergyJ += d.energy
	}
	m.IdleJ = max(0, m.EnergyJ-ofTasks)
	if over := m.Makespan.Seconds() * float64(len(e.devices)); over > 0 {
		m.MeanSMACT, m.MeanMemory = smact/over, units.Bytes(memory/over)
	}
	return m
}

// urgent sets the waiting times of tasks with high priority.
func (m *Metrics) urgent(results []TaskResult) {
	var sum total
	var waits []time.Duration
	for i := range results {
		if results[i].Task.Priority == model.High {
			waits = append(waits, results[i].Record.Idle())
			sum.add(waits[len(waits)-1])
		}
	}
	if m.UrgentTasks = len(waits); m.UrgentTasks > 0 {
		slices.Sort(waits)
		m.MeanUrgent, m.P95Urgent = sum.mean(len(waits)), Quantile(waits, 0.95)
	}
}
