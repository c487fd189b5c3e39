package runner

import (
	"slices"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/gpu"
)

// timesOf names an attempt on a GPU.
type timesOf struct {
	uuid    string
	attempt attemptKey
}

// timed is the share of time in which kernels of an attempt ran before an instant.
type timed struct {
	at     units.Instant
	active float64
}

// timeTasks sets the share of time in which kernels of each task ran, as the mean over
// the window, if the sample has the share of at least one of the task's processes. The
// shares of processes sum to at most 1.
func (m *monitor) timeTasks(now units.Instant, s *gpu.Sample, uses []model.TaskUse) {
	sums := map[attemptKey]float64{}
	for _, p := range s.Processes {
		if p.Task != 0 && p.Timed {
			sums[attemptKey{p.Task, p.Attempt}] += p.Active
		}
	}
	for i := range uses {
		use, last := &uses[i], -1
		for key := range sums {
			if key.task == use.Task {
				last = max(last, key.attempt)
			}
		}
		if last < 0 {
			continue
		}
		key := attemptKey{use.Task, last}
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

// timesIn returns the share of time in which kernels of each task ran, or nil if the sample
// lacks it for one task or more.
func timesIn(s *gpu.Sample) map[model.TaskID]float64 {
	of := map[model.TaskID]float64{}
	for _, p := range s.Processes {
		if p.Task != 0 && p.Timed {
			of[p.Task] += p.Active
		}
	}
	for _, p := range s.Processes {
		if _, known := of[p.Task]; p.Task != 0 && !known {
			return nil
		}
	}
	return of
}
