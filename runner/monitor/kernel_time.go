package monitor

import (
	"slices"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/gpu"
)

// timesOf identifies an attempt on a GPU.
type timesOf struct {
	uuid    string
	attempt gpu.AttemptKey
}

// timed is the share of time in which kernels of an attempt ran before an instant.
type timed struct {
	at     units.Instant
	active float64
}

// timeTasks sets the share of time in which kernels of each task ran, as the mean over
// the window, if the sample has the share of at least one of the task's processes. The
// shares of processes sum to at most 1.
func (m *Monitor) timeTasks(now units.Instant, s *gpu.Sample, uses []model.TaskUse) {
	sums := map[gpu.AttemptKey]float64{}
	for _, p := range s.Processes {
		if p.Task != 0 && p.Timed {
			sums[gpu.AttemptKey{Task: p.Task, Attempt: p.Attempt}] += p.Active
		}
	}
	for i := range uses {
		use, last := &uses[i], -1
		for key := range sums {
			if key.Task == use.Task {
				last = max(last, key.Attempt)
			}
		}
		if last < 0 {
			continue
		}
		key := gpu.AttemptKey{Task: use.Task, Attempt: last}
		of := timesOf{s.UUID, key}
		w := append(m.times[of], timed{now, min(1, sums[key])})
		w = slices.DeleteFunc(w, func(t timed) bool { return now.Sub(t.at) > activityWindow })
		m.times[of] = w
		sum := 0.0
		for _, t := range w {
			sum += t.active
		}
		use.Active, use.Timed = percent(sum/float64(len(w))), true
	}
}
