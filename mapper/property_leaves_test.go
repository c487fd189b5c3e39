package mapper

import (
	"maps"
	"slices"

	"carma/mapper/units"

	"pgregory.net/rapid"
)

// offers says that a program leaves its GPUs by itself, sometimes of another attempt or
// of a task that does not run.
func (m *machine) offers(t *rapid.T) {
	id, ok := m.any(t, Running)
	if !ok || rapid.IntRange(0, 5).Draw(t, "any task") == 0 {
		id = m.aTask(t)
	}
	attempt := m.tries[id] - rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "attempts ago")
	m.step(t, Leaves{At: m.now, Task: id, Attempt: attempt})
}

// leftOn are the suspended tasks that had a GPU.
func (m *machine) leftOn(id GPUID) (all []TaskID) {
	for _, task := range slices.Sorted(maps.Keys(m.away)) {
		if slices.ContainsFunc(m.away[task].Grants, func(g Grant) bool { return g.GPU == id }) {
			all = append(all, task)
		}
	}
	return all
}

// leaveBehind draws what suspended tasks still have on a GPU.
func (m *machine) leaveBehind(t *rapid.T, s *GPUSample) {
	for _, task := range m.leftOn(s.ID) {
		if used := rapid.SampledFrom([]units.Bytes{0, 400 * units.MiB, 3 * units.GiB}).Draw(t, "left behind"); used > 0 {
			s.Tasks, s.Used = append(s.Tasks, TaskUse{Task: task, Used: used}), s.Used+used
		}
	}
}

// bookBehind enters what samples show of suspended tasks, before anything came of them.
func (m *machine) bookBehind(ev Event) {
	switch e := ev.(type) {
	case Leaves:
		if l, ok := m.container(e.Task); ok && l.Attempt == e.Attempt && len(l.Grants) > 0 {
			m.offered[e.Task] = e.Attempt
		}
	case Sampled:
		for _, g := range e.GPUs {
			left := map[TaskID]units.Bytes{}
			for _, u := range g.Tasks {
				if _, ok := m.away[u.Task]; ok {
					left[u.Task] = u.Used
				}
			}
			m.behind[g.ID] = left
		}
	}
}

// othersLeft is what suspended tasks have left on a GPU, but one.
func (m *machine) othersLeft(gpu GPUID, but TaskID) (sum units.Bytes) {
	for task, used := range m.behind[gpu] {
		if task != but {
			sum += used
		}
	}
	return sum
}
