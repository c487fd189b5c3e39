package mapper

import (
	"strings"
	"time"

	"carma/mapper/model"

	"pgregory.net/rapid"
)

// limits are the groups from which tasks draw, with how many of each may run or be
// queued, or 0 for no limit.
var limits = map[string]int{"one": 1, "two": 2, "free": 0}

// anyWaits draws a task's dependencies, delay and group; most have none. Some depend on a task
// that has ended, and some on a task that cannot exist.
func (m *machine) anyWaits(t *rapid.T, r *model.Request) {
	r.Group = rapid.SampledFrom([]string{"", "", "one", "two", "free"}).Draw(t, "group")
	r.Parallel = limits[r.Group]
	r.Delay = rapid.SampledFrom([]time.Duration{0, 0, 0, time.Second, 40 * time.Second}).Draw(t, "delay")
	for range rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "dependencies") {
		latest := r.ID - 1
		if rapid.IntRange(0, 20).Draw(t, "sense") == 0 {
			latest = r.ID
		}
		if latest < 1 {
			return
		}
		r.After = append(r.After, model.Dependency{
			Task:      model.TaskID(rapid.Int64Range(max(1, int64(latest)-4), int64(latest)).Draw(t, "after")),
			Condition: rapid.SampledFrom(model.Conditions).Draw(t, "condition"),
		})
	}
}

// met reports whether a dependency is met by the accounts, and whether it can never be.
func (m *machine) met(d model.Dependency) (met, never bool) {
	ended := m.ended[d.Task]
	switch d.Condition {
	case model.AfterOK:
		return ended == model.Succeeded, ended != "" && ended != model.Succeeded
	case model.AfterStarted:
		return m.begun[d.Task] || ended == model.Succeeded, ended != "" && ended != model.Succeeded && !m.begun[d.Task]
	}
	return ended != "", false
}

// checkLaunchWaits checks that nothing is launched before its dependencies and delay, nor
// more of a group than its limit.
func (m *machine) checkLaunchWaits(t *rapid.T, l model.Launch) {
	r := m.shape[l.Task]
	if now := m.s.Now(); now < m.born[l.Task].Add(r.Delay) {
		t.Fatalf("launched %+v at %d, submitted at %d with a delay of %s", l, now, m.born[l.Task], r.Delay)
	}
	for _, d := range r.After {
		if met, _ := m.met(d); !met {
			t.Fatalf("launched %+v before %+v; that ended as %q", l, d, m.ended[d.Task])
		}
	}
	n := 0
	for id := range m.live {
		if m.shape[id].Group == r.Group && !m.found[id] {
			n++
		}
	}
	if r.Parallel > 0 && n > r.Parallel {
		t.Fatalf("launched %+v: %d tasks of group %q are placed, %d may be", l, n, r.Group, r.Parallel)
	}
}

// checkCascade checks that a task is withdrawn only if a dependency can never be met.
func (m *machine) checkCascade(t *rapid.T, task model.Task) {
	if task.Phase != model.Cancelled || !strings.HasPrefix(string(task.Reason.Code), "after-") {
		return
	}
	for _, d := range m.shape[task.ID].After {
		if _, never := m.met(d); never || d.Task >= task.ID || m.ended[d.Task] != "" && d.Condition != model.AfterAny {
			return
		}
	}
	t.Fatalf("task %d was withdrawn (%s); it waits for %+v", task.ID, say(task.Reason), m.shape[task.ID].After)
}

// checkHeld checks that each held task has a reason in the accounts, and that none is
// held whose dependency can never be met.
func (m *machine) checkHeld(t *rapid.T, tasks []model.Task) {
	active := map[string]int{}
	for _, task := range tasks {
		if task.Phase.Active() {
			active[task.Group]++
		}
	}
	for _, task := range tasks {
		r, unmet := m.shape[task.ID], 0
		for _, d := range r.After {
			met, never := m.met(d)
			if never {
				t.Fatalf("task %d is %s, and %+v can never be met", task.ID, task.Phase, d)
			}
			if !met {
				unmet++
			}
		}
		waits := unmet > 0 || m.s.Now() < m.born[task.ID].Add(r.Delay) || m.onHold[task.ID]
		waits = waits && m.away[task.ID].Task == 0 && m.live[task.ID].Task == 0 // it has started: it can only be held while it is suspended
		full := r.Parallel > 0 && active[r.Group] >= r.Parallel
		if task.Phase == model.Held != (waits || full) && task.Phase != model.Estimating && !(full && task.Phase.Active()) {
			t.Fatalf("task %d is %s; it waits for %d tasks, on hold: %v, its delay is over: %v, its group is full: %v", task.ID, task.Phase, unmet, m.onHold[task.ID], !waits, full)
		}
		if why, ok := m.s.Why(task.ID); task.Phase == model.Held && (!ok || why.Rule == "" || why.Binding.Code == "" || why.Position != 0) {
			t.Fatalf("task %d is held and says %+v", task.ID, why)
		}
	}
}
