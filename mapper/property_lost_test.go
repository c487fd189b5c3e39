package mapper

import (
	"slices"

	"carma/mapper/model"

	"pgregory.net/rapid"
)

// takenIn adopts a container that the journal does not contain: a container of an unknown task,
// of a waiting task, or of a later attempt of a running task.
func (m *machine) takenIn(t *rapid.T) {
	gpus := m.s.GPUs()
	if len(gpus) == 0 {
		return
	}
	g := rapid.SampledFrom(gpus).Draw(t, "GPU")
	ev := model.OrphanAdopted{At: m.now, Request: model.Request{ID: m.last + 1, User: "ada", GPUs: 1}, Grants: []model.Grant{{GPU: g.ID, Memory: anyMemory(t)}}}
	id, known := m.any(t, model.Estimating, model.Held, model.Queued, model.Recovering, model.Launching, model.Running)
	if known && rapid.Bool().Draw(t, "known") {
		ev.Request = m.shape[id]
	}
	if ev.NoGPU {
		ev.Grants, ev.Host = nil, model.HostShare{Node: g.Node, Memory: anyMemory(t)}
	}
	ev.Attempt = m.tries[ev.ID] + rapid.IntRange(0, 2).Draw(t, "attempts")
	if rapid.Bool().Draw(t, "launched") {
		ev.Launched = max(1, m.now-5)
	}
	m.step(t, ev)
}

// bookTakenIn records an adopted container, unless its attempt is known.
func (m *machine) bookTakenIn(ev model.OrphanAdopted) {
	if ev.Attempt < 1 || ev.Attempt <= m.tries[ev.ID] || m.closed[ev.ID] {
		return
	}
	if !m.open[ev.ID] {
		m.last = max(m.last, ev.ID)
		m.open[ev.ID], m.born[ev.ID] = true, max(m.now, m.s.Now())
	}
	r := ev.Request
	r.GPUs, r.After, r.Delay = len(ev.Grants), nil, 0 // it was launched, so its dependencies were met
	m.shape[ev.ID], m.tries[ev.ID], m.begun[ev.ID] = r, ev.Attempt, true
	for id, l := range m.live { // no task is exclusive there any more
		if slices.ContainsFunc(l.Grants, func(g model.Grant) bool { return len(ev.Grants) > 0 && g.GPU == ev.Grants[0].GPU }) {
			l.Alone = false
			m.live[id] = l
		}
	}
	for _, g := range m.s.GPUs() { // the entry of a missing GPU may be a new one
		if len(ev.Grants) > 0 && g.ID == ev.Grants[0].GPU && !m.there[g.ID] {
			m.alien[g.ID], m.used[g.ID], m.fault[g.ID] = g.ForeignMemory(), g.Used, g.Fault != ""
		}
	}
	m.found[ev.ID] = true
	m.live[ev.ID] = model.Launch{Task: ev.ID, Attempt: ev.Attempt, Grants: slices.Clone(ev.Grants), Host: ev.Host}
	m.ranFrom[ev.ID] = ranFrom{ev.Attempt, ev.Launched}
}

// recorded sends the end of a task that was lost from the journal.
func (m *machine) recorded(t *rapid.T) {
	id, ok := m.any(t, model.Estimating, model.Held, model.Queued, model.Recovering, model.Launching, model.Running, model.Stopping, model.Suspending, model.Suspended, model.Resuming)
	if !ok {
		return
	}
	found, _ := m.s.Task(id)
	task := found.Clone()
	task.Phase = rapid.SampledFrom([]model.Phase{model.Succeeded, model.Failed, model.Cancelled, model.Running}).Draw(t, "phase")
	m.step(t, model.EndRecovered{At: m.now, Task: *task})
}

// removed deletes the records of tasks, which decides nothing.
func (m *machine) removed(t *rapid.T) {
	if m.last > 0 {
		m.step(t, model.Removed{At: m.now, Tasks: []model.TaskID{model.TaskID(rapid.Int64Range(1, int64(m.last)).Draw(t, "task"))}, By: "ada"})
	}
}
