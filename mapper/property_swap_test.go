package mapper

import (
	"maps"
	"slices"
	"testing"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/predict"
	"carma/mapper/preempt"

	"pgregory.net/rapid"
)

// TestWayProperties runs random histories with many preemptions, for each of the reasons,
// on a server with few other obstacles.
func TestWayProperties(t *testing.T) {
	for code, crowd := range map[model.ReasonCode]func(*machine, *rapid.T){
		model.ReasonMadeWay: (*machine).crowds, model.ReasonSwapped: (*machine).swapCrowd, model.ReasonFilled: (*machine).fillCrowd,
	} {
		t.Run(string(code), func(t *testing.T) {
			seen := 0
			rapid.Check(t, func(t *rapid.T) {
				for _, decisions := range aCrowdedLife(t, crowd) {
					for _, d := range decisions {
						if d, ok := d.(model.Suspend); ok && d.Reason.Code == code {
							seen++
						}
					}
				}
			})
			if seen == 0 {
				t.Error("in no life a task was suspended for this reason")
			}
		})
	}
}

// aCrowdedLife runs a random history that begins with full GPUs. It returns the decisions.
func aCrowdedLife(t *rapid.T, crowd func(*machine, *rapid.T)) [][]model.Decision {
	m := newMachine(t)
	for i := range m.all {
		m.all[i].Suspend, m.all[i].MIG = model.SuspendMove, false
	}
	m.find(t, rapid.SampledFrom([][]model.GPUInfo{m.all[:2], m.all[:2], m.all}).Draw(t, "GPUs"))
	m.opt = calmOptions(t)
	m.step(t, model.Configured{At: m.now, Options: m.opt, Format: model.DecisionFormat})
	crowd(m, t)
	actions := []func(*rapid.T){m.exit, m.answers, m.answers, func(t *rapid.T) { m.finishMoves(t) }, m.start, m.pass, m.wake, m.sample, m.restart, m.cancel, m.pins}
	for range rapid.IntRange(0, 12).Draw(t, "actions") {
		rapid.SampledFrom(actions).Draw(t, "action")(t)
	}
	m.drains(t)
	m.replays(t)
	m.follows(t)
	return m.led
}

func calmOptions(t *rapid.T) model.Options {
	o := DefaultsOf(rapid.SampledFrom([]string{"magm", "best-fit", "carma", "carma"}).Draw(t, "policy"))
	o.SwapShorter, o.FillHeld, o.MakeWay = true, true, rapid.Bool().Draw(t, "make way")
	o.WarmUp, o.Interval, o.SMACTCap = 0, 0, 0
	o.Ageing = rapid.SampledFrom([]time.Duration{time.Minute, time.Minute, 0, time.Hour}).Draw(t, "ageing")
	return o
}

// comes submits a task with known run time and memory.
func (m *machine) comes(t *rapid.T, r model.Request, need units.Bytes, run time.Duration) {
	m.last++
	r.ID = m.last
	m.shape[r.ID], m.open[r.ID], m.born[r.ID] = r, true, max(m.now, m.s.Now())
	m.step(t, model.TaskSubmitted{At: m.now, Request: r})
	expected := anyExpected(t)
	expected.RunTime = run
	m.step(t, model.Estimated{At: m.now, Task: r.ID, Estimate: model.Estimate{Memory: need}, Expected: expected})
}

// begins starts all launched tasks, and advances the time.
func (m *machine) begins(t *rapid.T, later ...time.Duration) {
	for _, task := range m.s.Tasks() {
		if task.Phase == model.Launching {
			m.step(t, model.Started{At: m.now, Task: task.ID, Attempt: m.tries[task.ID]})
		}
	}
	m.now = max(m.now, m.s.Now()).Add(rapid.SampledFrom(later).Draw(t, "later"))
	m.step(t, model.TimerFired{At: m.now})
}

// swapCrowd fills the GPUs with long tasks, and submits short ones later.
func (m *machine) swapCrowd(t *rapid.T) {
	for range rapid.IntRange(2, 8).Draw(t, "long tasks") {
		m.comes(t, model.Request{GPUs: 1, Terminal: rapid.IntRange(0, 9).Draw(t, "terminal") == 0},
			rapid.SampledFrom([]units.Bytes{10, 14, 14}).Draw(t, "GiB")*units.GiB, rapid.SampledFrom([]time.Duration{5 * time.Hour, 5 * time.Hour, 0}).Draw(t, "runs"))
	}
	m.begins(t, preempt.PreemptibleAfter, preempt.SwappableAfter-1, preempt.SwappableAfter, 2*preempt.SwappableAfter)
	for range rapid.IntRange(1, 3).Draw(t, "short tasks") {
		m.comes(t, model.Request{GPUs: rapid.SampledFrom([]int{1, 1, 1, 2}).Draw(t, "GPUs"), Priority: rapid.SampledFrom([]model.Priority{model.Normal, model.Normal, model.Low}).Draw(t, "priority"), TimeLimit: rapid.SampledFrom([]time.Duration{0, 0, 5 * time.Minute}).Draw(t, "time limit")},
			rapid.SampledFrom([]units.Bytes{3, 12}).Draw(t, "GiB")*units.GiB, rapid.SampledFrom([]time.Duration{0, time.Minute, preempt.SwapMost / 2, preempt.SwapMost}).Draw(t, "runs"))
	}
}

// fillCrowd reserves GPUs for a task on several, and submits others that may backfill
// them.
func (m *machine) fillCrowd(t *rapid.T) {
	for range rapid.SampledFrom([]int{1, 1, 2, 6}).Draw(t, "tasks") {
		m.comes(t, model.Request{GPUs: 1}, 12*units.GiB, 3*time.Hour)
	}
	m.begins(t, 0, time.Minute)
	m.comes(t, model.Request{GPUs: rapid.SampledFrom([]int{2, 2, 2, 2, 2, 1, 3}).Draw(t, "GPUs"), Exclusive: rapid.Bool().Draw(t, "exclusive"), Priority: rapid.SampledFrom([]model.Priority{model.Normal, model.High}).Draw(t, "priority")}, 14*units.GiB, 9*time.Hour)
	m.begins(t, time.Minute, time.Hour)
	for range rapid.IntRange(1, 3).Draw(t, "fillers") {
		m.comes(t, model.Request{GPUs: 1, Priority: rapid.SampledFrom([]model.Priority{model.Low, model.Normal, model.Normal, model.High}).Draw(t, "priority"), Terminal: rapid.IntRange(0, 7).Draw(t, "terminal") == 7},
			rapid.SampledFrom([]units.Bytes{12, 12, 2}).Draw(t, "GiB")*units.GiB, rapid.SampledFrom([]time.Duration{0, 2 * time.Hour}).Draw(t, "runs"))
	}
	m.begins(t, preempt.PreemptibleAfter, time.Hour)
	for range rapid.IntRange(2, 5).Draw(t, "ends") {
		for id, l := range m.live {
			if task, _ := m.s.Task(id); task.Phase == model.Running && l.Fills == 0 && id == slices.Min(slices.Collect(maps.Keys(m.live))) {
				m.step(t, model.Exited{At: m.now, Task: id, Attempt: m.tries[id], Class: model.ExitOK})
				break
			}
		}
	}
}

// maySwap reports whether a task may be suspended for one known to be short.
func (m *machine) maySwap(id model.TaskID, waits *model.Task, most time.Duration) bool {
	limit := m.shape[waits.ID].TimeLimit
	_, basis := m.s.predictor.RunTime(m.s.TaskByID(id))
	return m.opt.SwapShorter && waits.GPUs == 1 && waits.Phase != model.Suspended && basis != predict.Guessed &&
		most > 0 && most <= preempt.SwapMost && (limit == 0 || most <= limit)
}

// hasAll reports whether enough GPUs are nominated for a task on several.
func (m *machine) hasAll(waits *model.Task) bool {
	n := 0
	for _, g := range m.s.GPUList() {
		if g.NominatedFor == waits.ID {
			n++
		}
	}
	return m.opt.FillHeld && waits.GPUs > 1 && n == waits.GPUs
}

// checkFills checks that only a task that can be suspended, and of no higher priority,
// backfills a GPU that is reserved for a task on several.
func (m *machine) checkFills(t *rapid.T, l model.Launch) {
	if l.Fills == 0 {
		return
	}
	r := m.shape[l.Task]
	held, ok := m.s.Task(l.Fills)
	i := slices.IndexFunc(m.all, func(g model.GPUInfo) bool { return g.ID == l.Grants[0].GPU })
	if now, _ := m.s.Task(l.Task); !ok || !m.opt.FillHeld || len(l.Grants) != 1 || r.Terminal || m.all[i].Suspend == model.SuspendNever || held.GPUs < 2 || now.Priority > held.Priority || m.stays[l.Task] == l.Attempt-1 && l.Attempt > 1 {
		t.Fatalf("%+v of %+v fills a GPU that is held for %+v", l, r, held)
	}
}
