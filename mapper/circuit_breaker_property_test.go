package mapper

import (
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"

	"pgregory.net/rapid"
)

// TestOutages checks, for any outage of the engine, that no task fails or loses its place
// because of it, that an engine that is known to be unhealthy gets at most one launch at a
// time, and that all tasks run when it has recovered.
func TestOutages(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine(t)
		m.opt.BlamelessRetries, m.opt.Interval, m.opt.WarmUp = 8, 0, 0
		m.opt.QuotaTasks, m.opt.QuotaGPUs, m.opt.QuotaMemory, m.opt.Slot, m.opt.Quotas = 0, 0, 0, 0, nil
		m.step(t, model.Configured{At: m.now, Options: m.opt})
		for range rapid.IntRange(1, 12).Draw(t, "tasks") {
			m.last++
			m.shape[m.last], m.open[m.last] = model.Request{ID: m.last, GPUs: 1, User: rapid.SampledFrom([]string{"ada", "bob"}).Draw(t, "user")}, true
			m.born[m.last] = m.now
			m.step(t, model.TaskSubmitted{At: m.now, Request: m.shape[m.last]})
			m.step(t, model.Estimated{At: m.now, Task: m.last, Estimate: model.Estimate{Memory: units.GiB}})
		}
		for range rapid.IntRange(1, 5).Draw(t, "outages") {
			m.outage(t, rapid.IntRange(1, 60).Draw(t, "wake-ups"))
			m.works(t, rapid.IntRange(0, 6).Draw(t, "ends"))
		}
		for n := 0; len(m.open) > 0; n++ {
			if n > 1000 {
				t.Fatalf("tasks %v have not ended; sick: %+v", m.open, m.s.Breakers())
			}
			m.works(t, 1)
		}
		for id, phase := range m.ended {
			if phase != model.Succeeded {
				t.Fatalf("task %d is %s", id, phase)
			}
		}
	})
}

// outage makes all starts of containers fail for some time.
func (m *machine) outage(t *rapid.T, wakes int) {
	for range wakes {
		settled := m.settled()
		launched := 0
		for _, task := range m.s.Tasks() {
			if task.Phase != model.Launching {
				continue
			}
			launched++
			f := model.Fault{Scope: model.ScopeEngine, Cause: "broken"}
			m.step(t, model.Exited{At: m.now, Task: task.ID, Attempt: m.tries[task.ID], Class: model.ExitInfrastructure, Fault: &f})
		}
		if settled && launched > 1 {
			t.Fatalf("%d launches on a sick engine", launched)
		}
		for _, task := range m.s.Tasks() {
			if task.NotAtFault != 0 || task.Failures != 0 || task.Phase == model.Recovering || len(task.Attempts) > 1 && !task.Phase.Placed() {
				t.Fatalf("task %d lost something: %+v", task.ID, task)
			}
		}
		m.sleep(t)
	}
}

// settled reports whether the engine is known to be unhealthy, and the launches in flight
// when the pause began have ended.
func (m *machine) settled() bool {
	return m.s.breakers.Save().Sick.Paused() && m.s.breakers.Save().Sick.Wait > m.s.NextProbe()
}

// works lets containers start and end.
func (m *machine) works(t *rapid.T, ends int) {
	for range ends {
		did := false
		for _, task := range m.s.Tasks() {
			if task.Phase == model.Launching {
				m.step(t, model.Started{At: m.now, Task: task.ID, Attempt: m.tries[task.ID]})
				m.step(t, model.Exited{At: m.now, Task: task.ID, Attempt: m.tries[task.ID], Class: model.ExitOK})
				did = true
			}
		}
		if !did {
			m.sleep(t)
		}
	}
}

// sleep advances the time to the next timer.
func (m *machine) sleep(t *rapid.T) {
	m.now = m.now.Add(time.Second)
	if m.alarm != 0 {
		m.now = max(m.now, m.alarm)
	}
	m.step(t, model.TimerFired{At: m.now})
}
