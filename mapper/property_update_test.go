package mapper

import (
	"slices"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/queue"

	"pgregory.net/rapid"
)

// aTask draws a number of a task, most often of one that has not ended.
func (m *machine) aTask(t *rapid.T) model.TaskID {
	if id, ok := m.any(t, model.Estimating, model.Held, model.Queued, model.Recovering, model.Launching, model.Running, model.Stopping, model.Suspending, model.Suspended, model.Resuming); ok && rapid.IntRange(0, 9).Draw(t, "unfinished") > 0 {
		return id
	}
	return model.TaskID(rapid.Int64Range(0, int64(m.last)+1).Draw(t, "task"))
}

func (m *machine) holds(t *rapid.T) {
	m.step(t, model.HoldChanged{At: m.now, Task: m.aTask(t), Hold: rapid.IntRange(0, 2).Draw(t, "hold") > 0, By: "ada"})
}

func (m *machine) recalls(t *rapid.T) {
	m.step(t, model.RequeueRequested{At: m.now, Task: m.aTask(t), Hold: rapid.Bool().Draw(t, "hold"), By: "ada"})
}

// reorders moves a task, and checks before anything is launched that only the positions of its
// user's tasks have changed.
func (m *machine) reorders(t *rapid.T) {
	ev := model.QueueMoved{At: m.now, Task: m.aTask(t), Last: rapid.Bool().Draw(t, "last")}
	c := m.s.Clone()
	c.take(model.TimerFired{At: m.now}) // the effect of the time alone
	before := c.Clone()
	c.take(ev)
	moved, waits := before.Task(ev.Task)
	waits = waits && moved.Waiting()
	var places, sorted, left, order []int
	for _, task := range before.Tasks() {
		was, is := before.Position(task.ID), c.Position(task.ID)
		switch {
		case !waits || task.User != moved.User || m.opt.Fair() && task.Account != moved.Account || queue.LaneOf(&task) != queue.LaneOf(moved):
			if was != is {
				t.Fatalf("%+v moved task %d from place %d to %d", ev, task.ID, was, is)
			}
		case was > 0:
			places, sorted = append(places, was), append(sorted, is)
			if task.ID != ev.Task {
				left, order = append(left, was), append(order, is)
			}
		}
	}
	if waits {
		at := c.Position(ev.Task)
		if first, last := slices.Min(places), slices.Max(places); at != first && !ev.Last || at != last && ev.Last {
			t.Fatalf("%+v: it has the place %d, its user's are %v", ev, at, places)
		}
		slices.Sort(places)
		slices.Sort(sorted)
		if !slices.Equal(places, sorted) {
			t.Fatalf("%+v: the places were %v and are %v", ev, places, sorted)
		}
		for i := range left {
			for j := range left {
				if left[i] < left[j] && order[i] > order[j] {
					t.Fatalf("%+v: the others' places were %v and are %v", ev, left, order)
				}
			}
		}
	}
	m.step(t, ev)
}

// maybe draws a value, or none.
func maybe[T any](t *rapid.T, name string, values ...T) *T {
	if rapid.IntRange(0, 2).Draw(t, name+" changes") > 0 {
		return nil
	}
	return new(rapid.SampledFrom(values).Draw(t, name))
}

func (m *machine) changes(t *rapid.T) {
	id := m.aTask(t)
	c := model.TaskUpdate{
		Priority: maybe(t, "priority", model.Low, model.Normal, model.High), Retries: maybe(t, "retries", 0, 1, 5),
		TimeLimit: maybe(t, "time limit", 0, time.Second, time.Minute, time.Hour), Slot: maybe(t, "slot", 0, 10*time.Second),
		GPUs: maybe(t, "GPUs", 1, 2, 3), Kind: maybe(t, "kind", "a1", "b1"), Exclusive: maybe(t, "exclusive", false, true),
		Estimate: maybe(t, "estimate", model.Estimate{Memory: units.GiB, Method: model.Declared}, model.Estimate{Memory: 15 * units.GiB}, model.Estimate{WholeGPU: true}),
	}
	if rapid.IntRange(0, 3).Draw(t, "host changes") == 0 {
		var r model.Request
		m.anyHost(t, &r)
		c.Host = &model.HostAsk{Memory: r.HostMem, Reserve: r.HostReserve, CPUs: r.CPUs}
	}
	if rapid.IntRange(0, 3).Draw(t, "loads change") == 0 {
		c.Expected = new(anyExpected(t))
	}
	if rapid.IntRange(0, 3).Draw(t, "after changes") == 0 {
		var after []model.Dependency
		for range rapid.IntRange(0, 2).Draw(t, "dependencies") {
			after = append(after, model.Dependency{Task: model.TaskID(rapid.Int64Range(0, int64(m.last)+1).Draw(t, "after")), Condition: rapid.SampledFrom(append(model.Conditions, "never")).Draw(t, "condition")})
		}
		c.After = &model.After{Tasks: after}
	}
	m.step(t, model.TaskUpdated{At: m.now, Task: id, Change: c})
}

func (m *machine) closure(t *rapid.T) *model.Cordon {
	if rapid.Bool().Draw(t, "ends") {
		return nil
	}
	c := model.Cordon{By: "ada", Why: "cleaning", Move: rapid.Bool().Draw(t, "move")}
	if rapid.Bool().Draw(t, "for a time") {
		c.Until = m.now.Add(rapid.SampledFrom([]time.Duration{-time.Second, time.Second, time.Hour}).Draw(t, "until"))
	}
	return &c
}

func (m *machine) closes(t *rapid.T) {
	some := rapid.SliceOfNDistinct(rapid.SampledFrom([]model.GPUID{"a0", "a1", "a2", "b0", "b1", "x"}), 0, 6, func(id model.GPUID) model.GPUID { return id }).Draw(t, "GPUs")
	m.step(t, model.GPUsCordoned{At: m.now, GPUs: some, Closure: m.closure(t)})
}

func (m *machine) pauses(t *rapid.T) {
	m.step(t, model.LaunchingPaused{At: m.now, Closure: m.closure(t)})
}

// bookClosed records until when GPUs are cordoned; launch checks it.
func (m *machine) bookClosed(ev model.Event) {
	now := m.s.Now()
	until := func(c *model.Cordon) units.Instant {
		switch {
		case c == nil:
			return 0
		case c.Until > 0:
			return c.Until
		}
		return units.Never
	}
	switch e := ev.(type) {
	case model.GPUsCordoned:
		for _, id := range e.GPUs {
			if till := until(e.Closure); till <= now || m.isKnown(id) {
				m.shut[id] = till
			}
		}
	case model.LaunchingPaused:
		m.pausedTill = until(e.Closure)
	case model.TaskUpdated:
		m.bookChange(e)
	case model.OrphanAdopted:
		if task, ok := m.s.Task(e.ID); ok && task.Phase.Placed() { // it runs, even if it should have been held
			delete(m.onHold, e.ID)
		}
	case model.Reserved:
		m.bookReserved(e.Reservation)
	case model.HelpersBooked:
		m.bookHelpers(e)
	case model.Unreserved:
		m.kept = slices.DeleteFunc(m.kept, func(r model.Reservation) bool { return r.ID == e.ID })
	case model.Pinned:
		if task, ok := m.s.Task(e.Task); ok && task.Recall != nil {
			m.toHold[e.Task] = task.Recall.Hold
		}
	case model.RequeueRequested:
		if task, ok := m.s.Task(e.Task); ok && task.Recall != nil {
			m.toHold[e.Task] = task.Recall.Hold
		}
	case model.HoldChanged:
		task, ok := m.s.Task(e.Task)
		offGPUs := ok && task.StopReason.Code == "" && (m.away[e.Task].Task != 0 || m.leaving[e.Task] > 0)
		if ok && (!e.Hold || task.Alive() == nil || offGPUs) {
			m.onHold[e.Task] = e.Hold
		}
	}
	m.kept = slices.DeleteFunc(m.kept, func(r model.Reservation) bool { return r.Until <= now })
	if m.pausedTill <= now {
		m.pausedTill = 0
	}
	for id, till := range m.shut {
		if till <= now {
			delete(m.shut, id)
		}
	}
}

// isKnown reports whether the ledger has a GPU.
func (m *machine) isKnown(id model.GPUID) bool {
	for _, g := range m.s.GPUs() {
		if g.ID == id {
			return true
		}
	}
	return false
}

// resize records a new allocation of a running task, and checks it against the accounts.
func (m *machine) resize(t *rapid.T, ev model.Event, d model.Resize) {
	e, ok := ev.(model.TaskUpdated)
	was, live := m.live[d.Task]
	if !ok || !live || e.Task != d.Task || e.Change.Host == nil || was.Attempt != d.Attempt || m.leaving[d.Task] > 0 || m.returning[d.Task] > 0 {
		t.Fatalf("%+v on %#v, and it runs as %+v", d, ev, was)
	}
	l, r, ask := was, m.shape[d.Task], e.Change.Host
	l.Host = d.Host
	m.live[d.Task] = l
	asked := model.Request{GPUs: 1, HostMem: ask.Memory, HostReserve: ask.Reserve, CPUs: ask.CPUs}
	asked.Normalize()
	info := m.hosts[d.Host.Node]
	sameMemory := r.HostMem == asked.HostMem && r.HostReserve == asked.HostReserve
	r.HostMem, r.HostReserve, r.CPUs = asked.HostMem, asked.HostReserve, asked.CPUs
	m.shape[d.Task] = r
	memory, cpus := m.bookedOn(d.Host.Node)
	switch {
	case info.Total == 0 && d.Host.Memory+d.Host.Limit > 0:
		t.Fatalf("%+v where nothing is known of the machine", d)
	case info.Total == 0:
	case !sameMemory && r.HostMem > 0 && d.Host.Limit != r.HostMem, !sameMemory && r.HostMem > 0 && r.HostReserve == 0 && d.Host.Memory != r.HostMem, r.CPUs > 0 && d.Host.CPUs != r.CPUs:
		t.Fatalf("%+v for %+v", d, r)
	case d.Host.Memory > was.Host.Memory && d.Host.Memory > m.seenHost[d.Task] && memory > info.Memory, d.Host.CPUs > was.Host.CPUs && cpus > info.CPUs:
		t.Fatalf("%+v: %s and %d CPUs booked on %+v", d, memory, cpus, info)
	case d.Host.Limit < m.seenHost[d.Task]:
		t.Fatalf("%+v, and it uses %s", d, m.seenHost[d.Task])
	}
}

// bookChange records the changed request. The grant of the next launch does not change while a
// task is placed or its memory is being estimated.
func (m *machine) bookChange(e model.TaskUpdated) {
	task, ok := m.s.Task(e.Task)
	if !ok {
		return
	}
	_, alive := m.container(e.Task)
	r, c := m.shape[e.Task], e.Change
	set(&r.Priority, c.Priority)
	set(&r.Retries, c.Retries)
	set(&r.TimeLimit, c.TimeLimit)
	set(&r.Slot, c.Slot)
	if !alive && c.Host != nil {
		r.HostMem, r.HostReserve, r.CPUs = c.Host.Memory, c.Host.Reserve, c.Host.CPUs
	}
	if !alive && task.Phase != model.Estimating {
		if !r.NoGPU {
			set(&r.GPUs, c.GPUs)
		}
		set(&r.Kind, c.Kind)
		set(&r.Exclusive, c.Exclusive)
	}
	if c.After != nil && m.tries[e.Task] == 0 && valid(c.After.Tasks, e.Task) {
		r.After = nil
		for _, d := range c.After.Tasks {
			if m.open[d.Task] { // a task that has ended meets the condition
				r.After = append(r.After, d)
			}
		}
	}
	m.shape[e.Task] = r
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

func valid(after []model.Dependency, of model.TaskID) bool {
	return !slices.ContainsFunc(after, func(d model.Dependency) bool {
		return !slices.Contains(model.Conditions, d.Condition) || d.Task < 1 || d.Task >= of
	})
}
