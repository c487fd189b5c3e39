package mapper

import (
	"slices"

	"pgregory.net/rapid"
)

// book enters an event and what was decided in the machine's own books.
func (m *machine) book(t *rapid.T, ev Event, decisions []Decision) {
	if e, ok := ev.(Exited); ok && m.live[e.Task].Attempt == e.Attempt {
		delete(m.live, e.Task)
	}
	if _, ok := ev.(Woke); ok {
		m.alarm = 0
	}
	for _, d := range decisions {
		switch d := d.(type) {
		case WakeAt:
			m.alarm = d.At
		case Launch:
			m.launch(t, d)
		case Finish:
			id := d.Task.ID
			if !m.open[id] || m.live[id].Task != 0 || !d.Task.Phase.Finished() {
				t.Fatalf("task %d finished as %q; unfinished before: %v, still running: %v", id, d.Task.Phase, m.open[id], m.live[id].Task != 0)
			}
			delete(m.open, id)
			m.closed[id] = true
		case Stop:
			if l, ok := m.live[d.Task]; !ok || l.Attempt != d.Attempt {
				t.Fatalf("stop of attempt %d of task %d, which does not run", d.Attempt, d.Task)
			}
		case Requeue:
			if _, ok := m.live[d.Task]; ok || !m.open[d.Task] {
				t.Fatalf("task %d was requeued; running: %v, unfinished: %v", d.Task, ok, m.open[d.Task])
			}
		}
	}
}

// launch enters a launch and checks it against the books.
func (m *machine) launch(t *rapid.T, l Launch) {
	if _, twice := m.live[l.Task]; twice || !m.open[l.Task] {
		t.Fatalf("task %d was launched; already running: %v, unfinished: %v", l.Task, twice, m.open[l.Task])
	}
	if m.tries[l.Task]++; l.Attempt != m.tries[l.Task] {
		t.Fatalf("attempt %d of task %d has the number %d", m.tries[l.Task], l.Task, l.Attempt)
	}
	if want := m.shape[l.Task]; len(l.Grants) != want.GPUs || want.Exclusive && !l.Alone || !m.up {
		t.Fatalf("launched %+v for %+v, the engine is up: %v", l, want, m.up)
	}
	m.live[l.Task] = l
	seen := map[GPUID]bool{}
	for _, grant := range l.Grants {
		i := slices.IndexFunc(m.all, func(g GPUInfo) bool { return g.ID == grant.GPU })
		if i < 0 || seen[grant.GPU] || !m.there[grant.GPU] || m.fault[grant.GPU] || m.all[i].Node != m.node(l.Grants[0].GPU) {
			t.Fatalf("launched %+v; there: %v, faulty: %v", l, m.there, m.fault)
		}
		seen[grant.GPU] = true
		sum, tasks, alone := m.alien[grant.GPU]+m.opt.Headroom, 0, false
		for _, other := range m.live {
			for _, g := range other.Grants {
				if g.GPU == grant.GPU {
					sum, tasks, alone = sum+g.Memory, tasks+1, alone || other.Alone
				}
			}
		}
		if sum > m.all[i].Capacity || alone && tasks > 1 || m.opt.MaxTasks > 0 && tasks > m.opt.MaxTasks {
			t.Fatalf("launched %+v: %d tasks, alone %v, %s of %s on %s", l, tasks, alone, sum, m.all[i].Capacity, grant.GPU)
		}
	}
	if err := m.s.AuditLaunch(l); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) node(id GPUID) string {
	for _, g := range m.all {
		if g.ID == id {
			return g.Node
		}
	}
	return ""
}

// waiting are the tasks in the queues, in number order.
func (m *machine) waiting() []Task {
	return slices.DeleteFunc(m.s.Tasks(), func(t Task) bool { return t.Phase != Queued && t.Phase != Recovering })
}

// check is what holds after every step.
func (m *machine) check(t *rapid.T, waitedBefore []Task) {
	if err := m.s.Audit(); err != nil {
		t.Fatal(err)
	}
	tasks := m.s.Tasks()
	if len(tasks) != len(m.open) {
		t.Fatalf("%d tasks are unfinished, the state knows %d", len(m.open), len(tasks))
	}
	for _, task := range tasks {
		if !m.open[task.ID] {
			t.Fatalf("task %d is here and finished", task.ID)
		}
		if _, live := m.live[task.ID]; live != task.Phase.Placed() {
			t.Fatalf("task %d is %s, runs: %v", task.ID, task.Phase, live)
		}
	}
	m.checkAlarm(t, tasks)
	m.checkIdleness(t)
	m.checkOrder(t, waitedBefore)
}

// checkAlarm: for all that happens by itself a wake-up was asked for in time.
func (m *machine) checkAlarm(t *rapid.T, tasks []Task) {
	due := func(what string, at Instant) {
		if at > m.s.Now() && at != never && (m.alarm == 0 || m.alarm > at) {
			t.Fatalf("%s is due at %d, a wake-up was asked for at %d", what, at, m.alarm)
		}
	}
	if at, ok := m.s.NextWake(); ok {
		due("something", at)
	}
	for _, g := range m.s.GPUs() {
		for _, r := range g.Residents {
			due("the end of a warm-up", r.WarmUntil)
		}
	}
	for _, task := range tasks {
		due("the end of a back-off", task.NotBefore)
		if task.Phase == Running && task.TimeLimit > 0 {
			due("a time limit", task.Current().Started.Add(task.TimeLimit))
		}
	}
}

// checkIdleness: no task waits for nothing. One that fits waits only for the
// engine, for the end of its back-off, or behind as many that do not fit as
// may be passed over.
func (m *machine) checkIdleness(t *rapid.T) {
	passed := map[bool]int{} // in the recovery queue or not
	waiting := m.waiting()
	slices.SortFunc(waiting, func(a, b Task) int { return m.s.Position(a.ID) - m.s.Position(b.ID) })
	for _, task := range waiting {
		why, ok := m.s.Why(task.ID)
		if !ok || why.Binding == "" || why.Binding == "it fits and is about to start" {
			t.Fatalf("task %d waits for nothing: %+v", task.ID, why)
		}
		if task.NotBefore > m.s.Now() || !m.s.canFit(&task) {
			continue
		}
		if m.up && m.s.fits(why, &task) && passed[why.Recovery] < m.opt.LookAhead {
			t.Fatalf("task %d fits, and only %d before it do not: %+v", task.ID, passed[why.Recovery], why)
		}
		passed[why.Recovery]++
	}
}

// checkOrder: of two tasks that want the same and waited side by side, the
// later one is not launched first.
func (m *machine) checkOrder(t *rapid.T, before []Task) {
	for i, first := range before {
		still, ok := m.s.Task(first.ID)
		if !ok || still.Phase != first.Phase || len(still.Attempts) != len(first.Attempts) || still.NotBefore > m.s.Now() {
			continue
		}
		for _, later := range before[i+1:] {
			got, ok := m.s.Task(later.ID)
			if ok && got.Phase == Launching && first.Phase == later.Phase && first.Priority == later.Priority &&
				first.GPUs == later.GPUs && first.Need == later.Need && first.Alone == later.Alone {
				t.Fatalf("task %d was launched before task %d, which wants the same", later.ID, first.ID)
			}
		}
	}
}
