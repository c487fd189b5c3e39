package mapper

import (
	"maps"
	"slices"
	"testing"

	"carma/internal/units"
	"carma/mapper/model"

	"pgregory.net/rapid"
)

// offers reports that a program vacates its GPUs on request, sometimes of another attempt or of
// a task that does not run.
func (m *machine) offers(t *rapid.T) {
	id, ok := m.any(t, model.Running)
	if !ok || rapid.IntRange(0, 5).Draw(t, "any task") == 0 {
		id = m.aTask(t)
	}
	attempt := m.tries[id] - rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "attempts ago")
	m.step(t, model.VacatesOnRequest{At: m.now, Task: id, Attempt: attempt})
}

// leftOn returns the suspended tasks that had a GPU.
func (m *machine) leftOn(id model.GPUID) (all []model.TaskID) {
	for _, task := range slices.Sorted(maps.Keys(m.away)) {
		if slices.ContainsFunc(m.away[task].Grants, func(g model.Grant) bool { return g.GPU == id }) {
			all = append(all, task)
		}
	}
	return all
}

// leaveBehind draws the residue of suspended tasks on a GPU.
func (m *machine) leaveBehind(t *rapid.T, s *model.GPUSample) {
	for _, task := range m.leftOn(s.ID) {
		if used := rapid.SampledFrom([]units.Bytes{0, 400 * units.MiB, 3 * units.GiB}).Draw(t, "left behind"); used > 0 {
			s.Tasks, s.Used = append(s.Tasks, model.TaskUse{Task: task, Used: used}), s.Used+used
		}
	}
}

// bookBehind records the sampled residue of suspended tasks, before its effects.
func (m *machine) bookBehind(ev model.Event) {
	switch e := ev.(type) {
	case model.VacatesOnRequest:
		if l, ok := m.container(e.Task); ok && l.Attempt == e.Attempt && len(l.Grants) > 0 {
			m.offered[e.Task] = e.Attempt
		}
	case model.SuspendDone:
		if l, ok := m.live[e.Task]; ok && m.leaving[e.Task] == e.Attempt && e.Attempt > 0 && e.Failure == "" && m.itself[e.Task] {
			m.assumeLeft(e.Task, l.Grants)
		}
	case model.Resumed:
		if _, ok := m.live[e.Task]; ok && m.returning[e.Task] == e.Attempt && e.Attempt > 0 && e.Failure != "" && m.itself[e.Task] {
			m.assumeLeft(e.Task, m.home[e.Task])
		}
	case model.Sampled:
		for _, g := range e.GPUs {
			left := map[model.TaskID]units.Bytes{}
			for _, u := range g.Tasks {
				if _, ok := m.away[u.Task]; ok {
					left[u.Task] = u.Used
				}
			}
			m.behind[g.ID] = left
		}
	}
}

// assumeLeft records the assumed residue of a program that has vacated its GPUs, until a
// sample shows it.
func (m *machine) assumeLeft(id model.TaskID, grants []model.Grant) {
	for _, g := range grants {
		m.behind[g.GPU] = maps.Clone(m.behind[g.GPU])
		if m.behind[g.GPU] == nil {
			m.behind[g.GPU] = map[model.TaskID]units.Bytes{}
		}
		m.behind[g.GPU][id] = model.AssumedResidue
	}
}

// checkBehind checks that only suspended tasks have a residue.
func (m *machine) checkBehind(t *rapid.T) {
	for gpu, left := range m.behind {
		m.behind[gpu] = maps.Clone(left)
		maps.DeleteFunc(m.behind[gpu], func(id model.TaskID, _ units.Bytes) bool { _, away := m.away[id]; return !away })
	}
	for _, g := range m.s.GPUs() {
		for _, b := range g.Residue {
			if _, away := m.away[b.Task]; !away || b.Used != m.behind[g.ID][b.Task] {
				t.Fatalf("task %d has left %s on %s; suspended: %v, seen: %s", b.Task, b.Used, g.ID, away, m.behind[g.ID][b.Task])
			}
		}
	}
}

// othersLeft returns the residue of suspended tasks on a GPU, except one task's. A task that
// ends in this step has no residue, because this memory may be allocated again in the same
// step.
func (m *machine) othersLeft(gpu model.GPUID, but model.TaskID) (sum units.Bytes) {
	for task, used := range m.behind[gpu] {
		if _, away := m.away[task]; away && task != but {
			sum += used
		}
	}
	return sum
}

// TestOthersLeft checks that a task whose suspended attempt has just ended has no
// residue.
func TestOthersLeft(t *testing.T) {
	m := machine{away: map[model.TaskID]model.Launch{1: {}, 2: {}}, behind: map[model.GPUID]map[model.TaskID]units.Bytes{"a": {1: 1, 2: 2, 3: 4}}}
	if left := m.othersLeft("a", 2); left != 1 {
		t.Errorf("%d bytes are left, want those of task 1", left)
	}
}
