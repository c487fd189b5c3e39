// Package interference predicts the speeds of tasks that share a GPU.
package interference

import "math"

// Load is the activity of one task on a GPU when it runs there alone.
type Load struct {
	// SMACT, SMOCC and DRAMA are means over the run, 0 to 1, as DCGM defines
	// them. SMOCC does not take part in the model: it adds nothing to SMACT.
	SMACT, SMOCC, DRAMA float64
	// Step is the time of one training step in seconds, or 0 if not known. It stands for the
	// length of the task's kernels: a batch four times as large makes both about four times
	// as long.
	Step float64
}

// Model is the interference model. Alone, a task runs at speed 1. Next to other tasks it
// takes, for the same work, 1/speed times as long:
//
//	1/speed(i) = 1 + Σ_j [ Block · min(S_j, Ceiling)^Power · t_j/(t_j + Turn·t_i) + DRAM · D_i·D_j ]
//
// over its neighbours j, with S for SMACT, D for DRAMA and t for Step.
//
// The first term is waiting for the SMs. A launch waits when all SMs are busy, which
// grows steeply with the neighbour's activity. It waits until the neighbour's kernels
// have drained: long if they are longer than the task's own kernels, hardly at all if
// they are shorter. So a small network drops to a third of its speed next to VGG16 with
// large batches, while VGG16 loses two per cent. A model that divides SM time evenly
// cannot show this. The second term is contention for memory bandwidth.
//
// After that, all tasks are slowed by the same factor until they use at most one GPU's
// worth of SM time and of DRAM time. Two tasks hardly ever exceed that; it limits many
// small ones.
//
// The coefficients are fitted to pairs of tasks on an A100 40 GB (coefficients.go). More
// than two tasks, and other GPUs, are extrapolation.
type Model struct {
	Block, Power, Ceiling, Turn, DRAM float64
	// An unknown step time is assumed to be exp(StepBase + StepSlope·S).
	StepBase, StepSlope float64
}

// Speeds returns the speed of each of several tasks on one GPU relative to
// being alone there, by the fitted model: above 0, at most 1, and exactly 1
// for a single task. The order of the tasks does not matter.
func Speeds(loads []Load) []float64 { return Fitted.Speeds(loads) }

// Speeds returns the same as the function [Speeds], but for model m.
func (m Model) Speeds(loads []Load) []float64 {
	var space [16]Task
	tasks := space[:0]
	for _, l := range loads {
		tasks = append(tasks, m.Task(l))
	}
	return m.SpeedsOf(make([]float64, 0, len(loads)), tasks)
}

// SpeedsOf appends the speeds of prepared tasks.
func (m Model) SpeedsOf(speeds []float64, of []Task) []float64 {
	if len(of) == 1 {
		return append(speeds, 1)
	}
	// Sums are formed in an order that does not depend on the order of the tasks, so the
	// speeds do not either, to the last bit.
	var space [16]int
	order := space[:0]
	for i := range of {
		order = append(order, i)
		speeds = append(speeds, 0)
		for at := i; at > 0 && of[order[at]].before(&of[order[at-1]]); at-- {
			order[at], order[at-1] = order[at-1], order[at]
		}
	}
	sm, dram, own := 0.0, 0.0, speeds[len(speeds)-len(of):]
	for _, i := range order {
		t := &of[i]
		turn, shared := m.Turn*t.step, m.DRAM*t.dram
		stretch := 1.0
		for _, j := range order {
			if other := &of[j]; i != j {
				stretch += other.reach/(other.step+turn) + shared*other.dram
			}
		}
		own[i] = 1 / stretch
		sm += t.sm / stretch
		dram += t.dram / stretch
	}
	if over := max(sm, dram); over > 1 {
		for i := range own {
			own[i] /= over
		}
	}
	return speeds
}

// Task is a load prepared for the model, for repeated use.
type Task struct {
	sm, dram, step float64
	reach          float64 // step times the upper bound of the wait it causes
}

func (t *Task) before(other *Task) bool {
	if t.sm != other.sm {
		return t.sm < other.sm
	}
	if t.dram != other.dram {
		return t.dram < other.dram
	}
	return t.step < other.step
}

// Task prepares a load.
func (m Model) Task(l Load) Task {
	t := Task{sm: share(l.SMACT), dram: share(l.DRAMA), step: l.Step}
	if !(t.step > 0) {
		t.step = math.Exp(m.StepBase + m.StepSlope*t.sm)
	}
	t.step = max(1e-6, min(1e4, t.step))
	t.reach = m.Block * math.Pow(min(t.sm, m.Ceiling), m.Power) * t.step
	return t
}

// share limits a value to 0 to 1; NaN becomes 0.
func share(f float64) float64 {
	if !(f > 0) {
		return 0
	}
	return min(f, 1)
}
