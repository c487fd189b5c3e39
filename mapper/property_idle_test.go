package mapper

import (
	"slices"

	"carma/mapper/units"

	"pgregory.net/rapid"
)

func (m *machine) touches(t *rapid.T) { m.step(t, Touched{At: m.now, Task: m.aTask(t)}) }

// bookIdle keeps when GPUs and people last did something, and checks that only tasks
// are stopped for idleness that were idle for long enough and were warned.
func (m *machine) bookIdle(t *rapid.T, ev Event, decisions []Decision) {
	now := m.s.Now()
	switch e := ev.(type) {
	case GPUsFound: // nobody has looked meanwhile
		for _, g := range m.all {
			m.stirred[g.ID] = now
		}
	case Sampled:
		for _, g := range e.GPUs {
			if g.Coarse || g.Fault != "" || g.SMACT > idleMost {
				own := slices.ContainsFunc(g.Tasks, func(u TaskUse) bool { return u.Timed && u.Active == 0 }) && g.Fault == ""
				if !own {
					m.stirred[g.ID] = now
				}
			}
		}
	case Touched:
		m.typed[e.Task] = now
	}
	for _, d := range decisions {
		switch d := d.(type) {
		case Idle:
			m.warned[d.Task] = d
			if r := m.shape[d.Task]; d.Since != 0 && m.stirredAfter(d.Task, d.Since) {
				t.Fatalf("%+v: task %d (%+v) did something later than %d", ev, d.Task, r, d.Since)
			}
		case Stop:
			if e, answer := ev.(Suspended); d.Reason.Code == ReasonIdle && (!answer || e.Failure == "") {
				m.checkIdleStop(t, ev, d.Task)
			}
		case Suspend:
			if d.Reason.Code == ReasonIdle {
				m.checkIdleStop(t, ev, d.Task)
			}
		}
	}
}

// checkIdleStop checks that a task that is stopped or suspended for doing nothing has
// done nothing for long enough, and was warned.
func (m *machine) checkIdleStop(t *rapid.T, ev Event, id TaskID) {
	now := m.s.Now()
	r, w := m.shape[id], m.warned[id]
	limit := m.opt.IdleYield
	if r.Terminal {
		limit = m.opt.IdleStop
	}
	if r.IdleStop != 0 {
		limit = r.IdleStop
	}
	if limit <= 0 || w.Since == 0 || w.Ends == 0 || w.Ends > now || w.Since.Add(limit) > now || m.stirredAfter(id, w.Since) {
		t.Fatalf("%+v stopped task %d for idleness at %d: its limit is %s, it was told %+v", ev, id, now, limit, w)
	}
}

// stirredAfter reports whether a task did something after an instant.
func (m *machine) stirredAfter(id TaskID, since units.Instant) bool {
	if max(m.typed[id], m.ranFrom[id].at) > since {
		return true
	}
	return slices.ContainsFunc(m.live[id].Grants, func(g Grant) bool { return m.stirred[g.GPU] > since })
}
