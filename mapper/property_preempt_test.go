package mapper

import (
	"maps"
	"slices"
	"time"

	"carma/internal/units"
	"carma/mapper/ledger"
	"carma/mapper/model"
	"carma/mapper/preempt"

	"pgregory.net/rapid"
)

// ranFrom is the instant since which an attempt runs, or has resumed.
type ranFrom struct {
	attempt int
	at      units.Instant
}

// crowds fills GPUs with running tasks, and later submits one or two tasks that may preempt
// them.
func (m *machine) crowds(t *rapid.T) {
	put := func(r model.Request, need units.Bytes) {
		m.last++
		r.ID = m.last
		m.shape[r.ID], m.open[r.ID], m.born[r.ID] = r, true, max(m.now, m.s.Now())
		m.step(t, model.TaskSubmitted{At: m.now, Request: r})
		m.step(t, model.Estimated{At: m.now, Task: r.ID, Estimate: model.Estimate{Memory: need}, Expected: anyExpected(t)})
	}
	for range rapid.IntRange(3, 6).Draw(t, "tasks") {
		put(model.Request{GPUs: 1, Priority: rapid.SampledFrom([]model.Priority{model.Low, model.Normal}).Draw(t, "priority"), Terminal: rapid.IntRange(0, 9).Draw(t, "terminal") == 0},
			rapid.SampledFrom([]units.Bytes{5, 10, 14}).Draw(t, "GiB")*units.GiB)
	}
	for _, task := range m.s.Tasks() {
		if task.Phase == model.Launching {
			m.step(t, model.Started{At: m.now, Task: task.ID, Attempt: m.tries[task.ID]})
		}
	}
	m.now = max(m.now, m.s.Now()).Add(rapid.SampledFrom([]time.Duration{0, preempt.PreemptibleAfter - 1, preempt.PreemptibleAfter, 2 * preempt.SwappableAfter}).Draw(t, "later"))
	m.step(t, model.TimerFired{At: m.now})
	for range rapid.IntRange(1, 2).Draw(t, "urgent") {
		put(model.Request{GPUs: rapid.SampledFrom([]int{1, 1, 2}).Draw(t, "GPUs"), Priority: rapid.SampledFrom([]model.Priority{model.Normal, model.High, model.High}).Draw(t, "priority"), Terminal: rapid.Bool().Draw(t, "terminal")},
			rapid.SampledFrom([]units.Bytes{3, 12}).Draw(t, "GiB")*units.GiB)
	}
}

// makesWay checks that a task is suspended for one that may preempt it.
func (m *machine) makesWay(t *rapid.T, d model.Suspend) {
	victim, other := m.shape[d.Task], d.Reason.Task
	waits, ok := m.s.Task(other)
	if !ok || !waits.Waiting() || !m.opt.Preempts() || !m.up || m.pausedTill > 0 {
		t.Fatalf("%+v for %+v; the engine is up: %v, launching is paused until %d", d, waits, m.up, m.pausedTill)
	}
	now, _ := m.s.Task(d.Task)
	above, same, ran := waits.Priority > now.Priority, waits.Priority == now.Priority, m.s.Now().Sub(m.ranFrom[d.Task].at)
	back := waits.Phase == model.Suspended && m.s.Now().Sub(waits.Suspension.Since) >= ledger.SuspendedTooLongAfter && ran >= preempt.SwappableAfter
	may := m.opt.MakeWay && waits.Phase != model.Suspended && (above || same && waits.Terminal) || (above || same) && back
	switch d.Reason.Code {
	case model.ReasonSwapped:
		may = (above || same) && ran >= preempt.SwappableAfter && m.maySwap(d.Task, waits, d.Reason.Most)
	case model.ReasonFilled:
		may = (above || same) && m.live[d.Task].Fills != 0 && m.hasAll(waits)
	}
	if victim.Terminal || ran < preempt.PreemptibleAfter || !may {
		t.Fatalf("task %d (%s, terminal: %v), which has run for %s, makes way (%+v) for %d (%s, %s, terminal: %v, suspended: %+v)",
			now.ID, now.Priority, victim.Terminal, ran, d.Reason, waits.ID, waits.Priority, waits.Phase, waits.Terminal, waits.Suspension)
	}
	if !slices.ContainsFunc(m.live[d.Task].Grants, func(g model.Grant) bool { return m.s.GPU(g.GPU).NominatedFor == other }) {
		t.Fatalf("task %d makes way for %d, and none of its GPUs is kept for it", d.Task, other)
	}
	m.madeWay[d.Task] = other
}

// checkWay checks that no other task starts on GPUs that victims vacate for a task that still
// waits.
func (m *machine) checkWay(t *rapid.T, id model.TaskID, grants []model.Grant) {
	for victim, other := range m.madeWay {
		l, ok := m.live[victim]
		if waits, there := m.s.Task(other); !ok || m.leaving[victim] == 0 || !there || !waits.Waiting() || other == id || !m.opt.Preempts() {
			continue
		}
		for _, grant := range grants {
			if len(l.Grants) == 1 && grant.GPU == l.Grants[0].GPU { // with several GPUs some may be for others
				t.Fatalf("task %d came to GPU %s, which task %d is leaving for task %d", id, grant.GPU, victim, other)
			}
		}
	}
}

// noClaimAfter handles changes of a waiting preemptor by people, or its hold, which may
// end its nomination. Switching the option off ends all nominations.
func (m *machine) noClaimAfter(ev model.Event) {
	if c, ok := ev.(model.Configured); ok && !c.Options.Preempts() {
		clear(m.madeWay)
	}
	id := model.About(ev)
	maps.DeleteFunc(m.madeWay, func(_, other model.TaskID) bool { return id != 0 && other == id })
}
