package mapper

import (
	"slices"
	"time"

	"carma/internal/units"
	"carma/mapper/model"

	"pgregory.net/rapid"
)

func anySuspends(t *rapid.T, o *model.Options) {
	on := func(name string) bool { return rapid.Bool().Draw(t, name) }
	o.SuspendOveruse, o.SuspendIdle, o.SuspendSlots = on("suspend overuse"), on("suspend idle"), on("suspend slots")
	o.SuspendMoves, o.SuspendSlowing = on("suspend moves"), on("suspend slowing")
	o.SuspendLeast = rapid.SampledFrom([]time.Duration{0, 10 * time.Second, time.Hour}).Draw(t, "suspend least")
}

// instead describes a task that carma suspended on its own.
type instead struct {
	why   model.ReasonCode
	asked bool // somebody has asked for its resumption
}

// bookInstead records the outcome of a suspension, before the answer is in the accounts.
func (m *machine) bookInstead(ev model.Event) {
	now := m.s.Now()
	switch e := ev.(type) {
	case model.Started:
		if m.live[e.Task].Attempt == e.Attempt && !m.begun[e.Task] {
			delete(m.turn, e.Task)
		}
	case model.Exited:
		if m.tries[e.Task] == e.Attempt {
			delete(m.instead, e.Task)
			delete(m.turn, e.Task)
			delete(m.back, e.Task)
		}
	case model.ResumeAsked:
		m.comesBack(e.Task, m.instead[e.Task].why)
	case model.TerminalInput:
		m.comesBack(e.Task, model.ReasonIdle)
	case model.SuspendDone:
		if m.leaving[e.Task] == e.Attempt && e.Attempt > 0 && e.Failure != "" {
			m.stays[e.Task] = e.Attempt
			delete(m.instead, e.Task)
		}
	case model.Resumed:
		if m.returning[e.Task] == e.Attempt && e.Attempt > 0 && e.Failure == "" {
			m.back[e.Task] = now
			if m.instead[e.Task].why == model.ReasonSlotUsed {
				m.turn[e.Task] = now
			}
			delete(m.instead, e.Task)
		}
	}
}

func (m *machine) comesBack(id model.TaskID, why model.ReasonCode) {
	if in, ok := m.instead[id]; ok && in.why == why {
		in.asked = true
		m.instead[id] = in
	}
}

// checkInstead checks that carma suspends a task on its own only for a reason that the options
// allow, or for a cordon with Move, and only if the task would have been stopped otherwise, and
// never a task that could not be suspended before.
func (m *machine) checkInstead(t *rapid.T, d model.Suspend) {
	code := d.Reason.Code
	on, others := false, false
	switch code {
	case model.ReasonSuspended, model.ReasonFoundAway:
		delete(m.instead, d.Task)
		return
	case model.ReasonOveruse:
		on = m.opt.SuspendOveruse && m.opt.Watchdog == model.WatchdogRelaunch && d.Reason.Have > d.Reason.Of
	case model.ReasonIdle:
		on = m.opt.SuspendIdle
	case model.ReasonSlotUsed:
		on, others = m.opt.SuspendSlots, true
	case model.ReasonMoved:
		on = m.opt.SuspendMoves
	case model.ReasonSlowing:
		on, others = m.opt.SuspendSlowing, true
	case model.ReasonMadeWay:
		on = m.opt.Preempts()
	case model.ReasonSwapped:
		on = m.opt.SwapShorter
	case model.ReasonFilled:
		on = m.opt.FillHeld
	case model.ReasonDrained:
		on, others = m.shut[m.live[d.Task].Grants[0].GPU] > 0, true
	}
	now := m.s.Now()
	if back := m.back[d.Task]; !on || m.stays[d.Task] == d.Attempt || others && back > 0 && now < back.Add(m.opt.SuspendLeast) {
		t.Fatalf("%+v at %d under %+v; it came back at %d, and attempt %d could not be suspended", d, now, m.opt, back, m.stays[d.Task])
	}
	m.instead[d.Task] = instead{why: code, asked: code != model.ReasonIdle}
	m.checkSlotStop(t, model.Stop{Task: d.Task, Attempt: d.Attempt, Reason: d.Reason})
	m.checkMove(t, model.Stop{Task: d.Task, Attempt: d.Attempt, Reason: d.Reason})
}

// checkBack checks that an idle task resumes only when somebody asks for it.
func (m *machine) checkBack(t *rapid.T, d model.Resume) {
	if in, ok := m.instead[d.Task]; ok && !in.asked {
		t.Fatalf("%+v, and nobody asked for it: %+v", d, in)
	}
}

// moved pins a running task to a GPU to which it could be moved without ending it.
func (m *machine) moved(t *rapid.T) {
	id, ok := m.any(t, model.Running)
	if !ok || len(m.live[id].Grants) != 1 {
		return
	}
	var like []model.GPUID
	has := m.all[slices.IndexFunc(m.all, func(g model.GPUInfo) bool { return g.ID == m.live[id].Grants[0].GPU })]
	for _, g := range m.all {
		if g.ID != has.ID && g.Node == has.Node && g.Model == has.Model && g.Suspend == model.SuspendMove {
			like = append(like, g.ID)
		}
	}
	if len(like) > 0 {
		m.step(t, model.Pinned{At: m.now, Task: id, GPUs: []model.GPUID{rapid.SampledFrom(like).Draw(t, "to")}, By: "ada"})
	}
}

// rests sends samples of an idle GPU, and advances the time until its tasks are warned and
// stopped.
func (m *machine) rests(t *rapid.T) {
	id, ok := m.any(t, model.Running)
	if !ok || len(m.live[id].Grants) == 0 {
		return
	}
	gpu := m.live[id].Grants[0].GPU
	s := model.GPUSample{ID: gpu}
	for _, g := range m.s.GPUs() {
		for _, r := range g.Residents {
			if g.ID == gpu {
				s.Tasks, s.Used = append(s.Tasks, model.TaskUse{Task: r.Task, Used: units.GiB}), s.Used+units.GiB
			}
		}
	}
	m.alien[gpu], m.used[gpu], m.fault[gpu] = 0, s.Used, false
	m.step(t, model.Sampled{At: m.now, GPUs: []model.GPUSample{s}})
	for range rapid.IntRange(0, 6).Draw(t, "wake-ups") {
		m.wake(t)
	}
}

// outlasts lets a task run beyond its slot while others wait.
func (m *machine) outlasts(t *rapid.T) {
	m.more(t)
	m.start(t)
	m.now = m.now.Add(time.Minute)
	m.more(t)
}
