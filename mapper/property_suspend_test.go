package mapper

import (
	"maps"
	"slices"

	"carma/mapper/ledger"
	"carma/mapper/model"

	"pgregory.net/rapid"
)

func (m *machine) suspends(t *rapid.T) {
	id := m.aTask(t)
	if running, ok := m.any(t, model.Running); ok && rapid.IntRange(0, 3).Draw(t, "one that runs") > 0 {
		id = running
	}
	can := m.s.CannotSuspend(id).Code == ""
	m.step(t, model.SuspendAsked{At: m.now, Task: id, By: "ada"})
	if task, ok := m.s.Task(id); ok && can && task.Phase == model.Running {
		t.Fatalf("task %d was to be suspended and runs", id)
	}
	if can && rapid.Bool().Draw(t, "and back") {
		m.step(t, model.ResumeAsked{At: m.now, Task: id})
		m.step(t, model.SuspendDone{At: m.now, Task: id, Attempt: m.tries[id]})
	}
	if m.returning[id] > 0 {
		m.step(t, model.Resumed{At: m.now, Task: id, Attempt: m.tries[id], Failure: rapid.SampledFrom([]string{"", "", "no"}).Draw(t, "failure")})
	}
}

// findsAway reports that the container of a running task, or any, was found suspended.
func (m *machine) findsAway(t *rapid.T) {
	id, ok := m.any(t, model.Running)
	if !ok || rapid.IntRange(0, 3).Draw(t, "any task") == 0 {
		id = m.aTask(t)
	}
	attempt := m.tries[id] - rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "attempts ago")
	before, ok := m.s.Task(id)
	m.isAway = model.SuspendedOutOfBand{At: m.now, Task: id, Attempt: attempt, Left: rapid.Bool().Draw(t, "left by itself")}
	m.step(t, m.isAway)
	runs := ok && before.Phase == model.Running && before.Last().N == attempt
	if after, _ := m.s.Task(id); runs && (after.Phase == model.Suspending) != (len(before.Last().Grants) == 1 || len(before.Last().Grants) > 1 && m.isAway.Left) {
		t.Fatalf("%+v: task %+v is %s", m.isAway, before, after.Phase)
	}
	m.isAway = model.SuspendedOutOfBand{}
}

// checksDevices reports that an attempt, or an earlier one, has lost its devices or has
// them again. The record follows, and nothing is decided.
func (m *machine) checksDevices(t *rapid.T) {
	id, ok := m.any(t, model.Running)
	if !ok || rapid.IntRange(0, 3).Draw(t, "any task") == 0 {
		id = m.aTask(t)
	}
	ev := model.DevicesChecked{At: m.now, Task: id, Attempt: m.tries[id] - rapid.SampledFrom([]int{0, 0, 1}).Draw(t, "attempts ago"), State: rapid.SampledFrom([]model.DeviceState{"", model.DevicesDenied, model.DevicesGone}).Draw(t, "state")}
	before, open := m.s.Task(id)
	m.step(t, ev)
	after, _ := m.s.Task(id)
	if !open || before.Alive() == nil || before.Alive().N != ev.Attempt || after.Alive() == nil {
		return
	}
	switch was, is := before.Alive().Devices, after.Alive().Devices; {
	case (is != nil) != (ev.State != ""), is != nil && is.State != ev.State:
		t.Fatalf("%+v: %+v", ev, is)
	case was != nil && is != nil && was.Since != is.Since:
		t.Fatalf("%+v: lost since %d, before since %d", ev, is.Since, was.Since)
	}
}

func (m *machine) bringsBack(t *rapid.T) {
	id, ok := m.any(t, model.Suspending, model.Suspended)
	if !ok || rapid.IntRange(0, 3).Draw(t, "any task") == 0 {
		id = m.aTask(t)
	}
	m.step(t, model.ResumeAsked{At: m.now, Task: id, By: "ada"})
}

// answers reports the outcome of a suspension or resumption, sometimes of another attempt
// or of a task for which nobody asked.
func (m *machine) answers(t *rapid.T) {
	id, ok := m.any(t, model.Suspending, model.Resuming)
	if !ok || rapid.IntRange(0, 5).Draw(t, "any task") == 0 {
		id = m.aTask(t)
	}
	failure := rapid.SampledFrom([]string{"", "", "the driver said no"}).Draw(t, "failure")
	attempt := m.tries[id] - rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(t, "attempts ago")
	if other := rapid.IntRange(0, 5).Draw(t, "the other answer") == 0; other != (m.returning[id] > 0) {
		m.step(t, model.Resumed{At: m.now, Task: id, Attempt: attempt, Failure: failure})
		return
	}
	m.step(t, model.SuspendDone{At: m.now, Task: id, Attempt: attempt, Failure: failure})
}

// finishMoves answers for a task that is suspending, resuming, or suspended and asked to
// stop. It returns false if there is none.
func (m *machine) finishMoves(t *rapid.T) bool {
	for _, task := range m.s.Tasks() {
		if task.Phase == model.Suspended && task.StopReason.Code != "" {
			m.step(t, model.Exited{At: m.now, Task: task.ID, Attempt: m.tries[task.ID], Class: model.ExitStopped})
			m.step(t, model.HoldChanged{At: m.now, Task: task.ID}) // it may have been requeued with a hold
			return true
		}
	}
	id, ok := m.any(t, model.Suspending, model.Resuming)
	if !ok {
		return false
	}
	m.step(t, model.ResumeAsked{At: m.now, Task: id})
	if m.returning[id] > 0 {
		m.step(t, model.Resumed{At: m.now, Task: id, Attempt: m.tries[id]})
	} else {
		m.step(t, model.SuspendDone{At: m.now, Task: id, Attempt: m.tries[id]})
	}
	return true
}

// container returns the launch of a task that has a container.
func (m *machine) container(id model.TaskID) (model.Launch, bool) {
	if l, ok := m.live[id]; ok {
		return l, true
	}
	l, ok := m.away[id]
	return l, ok
}

// bookAway records answers, and the ends of suspended tasks.
func (m *machine) bookAway(ev model.Event) {
	switch e := ev.(type) {
	case model.Exited:
		if m.away[e.Task].Attempt == e.Attempt {
			delete(m.away, e.Task)
		}
		if m.tries[e.Task] == e.Attempt {
			delete(m.leaving, e.Task)
			delete(m.returning, e.Task)
		}
	case model.EndRecovered:
		if e.Task.Phase.Finished() {
			delete(m.away, e.Task.ID)
			delete(m.leaving, e.Task.ID)
			delete(m.returning, e.Task.ID)
		}
	case model.OrphanAdopted:
		if l, ok := m.live[e.ID]; ok && l.Attempt == e.Attempt { // adopted just now
			delete(m.away, e.ID)
			delete(m.leaving, e.ID)
			delete(m.returning, e.ID)
		}
	case model.SuspendDone:
		if l, ok := m.live[e.Task]; ok && m.leaving[e.Task] == e.Attempt && e.Attempt > 0 {
			if delete(m.leaving, e.Task); e.Failure == "" {
				delete(m.live, e.Task)
				m.away[e.Task] = l
			} else {
				delete(m.onHold, e.Task) // it continues to run
			}
		}
	case model.Resumed:
		if l, ok := m.live[e.Task]; ok && m.returning[e.Task] == e.Attempt && e.Attempt > 0 {
			m.ranFrom[e.Task] = ranFrom{e.Attempt, m.s.Now()}
			if delete(m.returning, e.Task); e.Failure != "" {
				delete(m.live, e.Task)
				l.Grants = m.home[e.Task] // the driver still has its memory on these GPUs
				m.away[e.Task] = l
			}
		}
	}
}

func (m *machine) suspend(t *rapid.T, d model.Suspend) {
	l, ok := m.live[d.Task]
	task, _ := m.s.Task(d.Task)
	if !ok || l.Attempt != d.Attempt || m.leaving[d.Task] > 0 || m.returning[d.Task] > 0 || !m.begun[d.Task] || task.Phase != model.Suspending {
		t.Fatalf("%+v of %+v, %+v", d, l, task)
	}
	i := slices.IndexFunc(m.all, func(g model.GPUInfo) bool { return g.ID == l.Grants[0].GPU })
	found := d.Reason.Code == model.ReasonFoundAway
	switch moves := d.Reason.Code == model.ReasonMoved || d.Reason.Code == model.ReasonSlowing || d.Reason.Code == model.ReasonDrained; {
	case found && (m.isAway.Task != d.Task || m.isAway.Attempt != d.Attempt || d.Leave != m.isAway.Left):
		t.Fatalf("%+v, and this was found: %+v", d, m.isAway)
	case found: // even if it could not be suspended now
	case d.Leave != (m.offered[d.Task] == d.Attempt && !moves):
		t.Fatalf("%+v; attempt %d leaves by itself", d, m.offered[d.Task])
	case !d.Leave && (len(l.Grants) != 1 || m.all[i].Suspend == model.SuspendNever):
		t.Fatalf("%+v of %+v on a GPU whose driver cannot", d, l)
	}
	m.itself[d.Task] = d.Leave
	if h := m.s.Host(l.Host.Node); h != nil && h.Known && h.Booked > h.Memory && len(m.helpers) == 0 && !found {
		t.Fatalf("%+v: %s of %s of the machine are booked", d, h.Booked, h.Memory)
	}
	// It lends no memory that it requested, and none that a sample has shown in use.
	if want := m.shape[d.Task]; d.Lent != 0 && (want.HostMem > 0 || want.HostReserve > 0 || d.Lent < 0 || d.Lent > l.Host.Memory-max(m.seenHost[d.Task], ledger.LeastHost)) {
		t.Fatalf("%+v of %+v for %+v, which was seen to use %s", d, l, want, m.seenHost[d.Task])
	}
	m.leaving[d.Task], m.lent[d.Task] = d.Attempt, d.Lent
	m.checkInstead(t, d)
	switch delete(m.madeWay, d.Task); d.Reason.Code {
	case model.ReasonMadeWay, model.ReasonSwapped, model.ReasonFilled:
		m.makesWay(t, d)
	}
}

// resume records that a task resumes, and checks its GPUs.
func (m *machine) resume(t *rapid.T, d model.Resume) {
	l, ok := m.away[d.Task]
	if !ok || l.Attempt != d.Attempt || len(d.Grants) != len(l.Grants) || len(d.From) != len(l.Grants) || !slices.EqualFunc(d.From, l.Grants, func(id model.GPUID, g model.Grant) bool { return g.GPU == id }) || !m.up || m.pausedTill > 0 || m.onHold[d.Task] {
		t.Fatalf("%+v of %+v; the engine is up: %v, launching is paused until %d, held: %v", d, l, m.up, m.pausedTill, m.onHold)
	}
	if home := slices.EqualFunc(d.From, d.Grants, func(id model.GPUID, g model.Grant) bool { return g.GPU == id }); m.itself[d.Task] && !home {
		t.Fatalf("%+v, and its program sees no other GPUs", d)
	}
	from := slices.IndexFunc(m.all, func(g model.GPUInfo) bool { return g.ID == d.From[0] })
	to := slices.IndexFunc(m.all, func(g model.GPUInfo) bool { return g.ID == d.Grants[0].GPU })
	if a, b := m.all[from], m.all[to]; a.ID != b.ID && (a.Model != b.Model || a.Model == "" || b.Suspend != model.SuspendMove || a.Node != b.Node || b.MIG || a.MIG) {
		t.Fatalf("%+v from %+v to %+v", d, a, b)
	}
	m.checkBack(t, d)
	delete(m.away, d.Task)
	m.home[d.Task], l.Grants = l.Grants, slices.Clone(d.Grants)
	l.Alone, l.Fills = d.Alone, 0
	m.live[d.Task], m.returning[d.Task] = l, d.Attempt
	m.checkGPUs(t, l)
	for _, g := range l.Grants {
		m.used[g.GPU] -= m.behind[g.GPU][d.Task]
		m.behind[g.GPU] = maps.Clone(m.behind[g.GPU])
		delete(m.behind[g.GPU], d.Task)
	}
	m.checkWay(t, d.Task, d.Grants)
}
