package mapper

import (
	"slices"

	"carma/mapper/model"

	"pgregory.net/rapid"
)

func (m *machine) touches(t *rapid.T) { m.step(t, model.TerminalInput{At: m.now, Task: m.aTask(t)}) }

// bookIdle records when GPUs and users were last active, and checks that tasks are stopped for
// idleness only if they were idle for long enough and were warned.
func (m *machine) bookIdle(t *rapid.T, ev model.Event, decisions []model.Decision) {
	now := m.s.Now()
	switch e := ev.(type) {
	case model.GPUsFound: // no samples came meanwhile
		for _, g := range m.all {
			m.stirred[g.ID] = now
		}
	case model.Sampled:
		for _, g := range e.GPUs {
			for _, u := range g.Tasks {
				if u.Used > 0 && slices.ContainsFunc(m.live[u.Task].Grants, func(grant model.Grant) bool { return grant.GPU == g.ID }) {
					m.touched[u.Task] = m.tries[u.Task]
				}
			}
			if g.Coarse || g.Fault != "" || g.SMACT > model.IdleActivity {
				own := slices.ContainsFunc(g.Tasks, func(u model.TaskUse) bool { return u.Timed && u.Active == 0 }) && g.Fault == ""
				if !own {
					m.stirred[g.ID] = now
				}
			}
		}
	case model.TerminalInput:
		m.typed[e.Task] = now
	}
	for _, d := range decisions {
		switch d := d.(type) {
		case model.Idle:
			m.warned[d.Task] = d
			if r := m.shape[d.Task]; d.Since != 0 && m.stirredAfter(d) {
				t.Fatalf("%+v: task %d (%+v) did something later than %d", ev, d.Task, r, d.Since)
			}
		case model.Stop:
			if e, answer := ev.(model.SuspendDone); d.Reason.Code == model.ReasonIdle && (!answer || e.Failure == "") {
				m.checkIdleStop(t, ev, d.Task)
			}
		case model.Suspend:
			if d.Reason.Code == model.ReasonIdle {
				m.checkIdleStop(t, ev, d.Task)
			}
		}
	}
}

// checkIdleStop checks that a task stopped or suspended for idling was idle for long
// enough, and was warned.
func (m *machine) checkIdleStop(t *rapid.T, ev model.Event, id model.TaskID) {
	now := m.s.Now()
	r, w := m.shape[id], m.warned[id]
	limit := m.opt.IdleYield
	if r.Terminal {
		limit = m.opt.IdleStop
	}
	if r.IdleStop != 0 {
		limit = r.IdleStop
	}
	if limit <= 0 || w.Since == 0 || w.Ends == 0 || w.Ends > now || w.Since.Add(limit) > now || m.stirredAfter(w) {
		t.Fatalf("%+v stopped task %d for idleness at %d: its limit is %s, it was told %+v", ev, id, now, limit, w)
	}
}

// stirredAfter reports whether a task was active after the instant from which it is
// reported idle. A task reported as unused has had no memory on its GPUs in this attempt.
func (m *machine) stirredAfter(d model.Idle) bool {
	if max(m.typed[d.Task], m.ranFrom[d.Task].at) > d.Since {
		return true
	}
	if d.Unused {
		return m.touched[d.Task] == d.Attempt
	}
	return slices.ContainsFunc(m.live[d.Task].Grants, func(g model.Grant) bool { return m.stirred[g.GPU] > d.Since })
}
