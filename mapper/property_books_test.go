package mapper

import (
	"reflect"
	"slices"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/place"
	"carma/mapper/preempt"

	"pgregory.net/rapid"
)

// book records an event and its decisions in the machine's own accounts.
func (m *machine) book(t *rapid.T, ev model.Event, decisions []model.Decision) {
	if e, ok := ev.(model.Exited); ok && m.live[e.Task].Attempt == e.Attempt {
		delete(m.live, e.Task)
	}
	m.bookBehind(ev)
	m.bookInstead(ev)
	m.bookAway(ev)
	if e, ok := ev.(model.Started); ok && m.live[e.Task].Attempt == e.Attempt && e.Attempt > 0 {
		m.begun[e.Task] = true
		if m.ranFrom[e.Task].attempt != e.Attempt {
			m.ranFrom[e.Task] = ranFrom{e.Attempt, m.s.Now()}
		}
	}
	switch e := ev.(type) {
	case model.TimerFired:
		m.alarm = 0
	case model.Configured:
		if e.Options.LaunchesAtOnce == 0 {
			m.onWay = nil
		}
	case model.LaunchAccepted:
		m.onWay = slices.DeleteFunc(m.onWay, func(h inflightLaunch) bool { return h == inflightLaunch{e.Task, e.Attempt} })
	case model.Sampled:
		m.bookHostUse(e)
	case model.OrphanAdopted:
		m.bookTakenIn(e)
	case model.EndRecovered:
		if e.Task.Phase.Finished() {
			delete(m.live, e.Task.ID)
		}
	}
	m.followCuts(t)
	m.bookClosed(ev)
	m.bookBroken(ev)
	m.bookIdle(t, ev, decisions)
	for _, d := range decisions {
		switch d := d.(type) {
		case model.SetTimer:
			m.alarm = d.At
		case model.Launch:
			m.launch(t, d)
			m.checkWay(t, d.Task, d.Grants)
		case model.Suspend:
			m.suspend(t, d)
		case model.Resize:
			m.resize(t, ev, d)
		case model.Resume:
			m.resume(t, d)
		case model.Finish:
			id := d.Task.ID
			if !m.open[id] || m.live[id].Task != 0 || m.away[id].Task != 0 || !d.Task.Phase.Finished() {
				t.Fatalf("task %d finished as %q; unfinished before: %v, still running: %v", id, d.Task.Phase, m.open[id], m.live[id].Task != 0)
			}
			delete(m.open, id)
			m.closed[id] = true
			m.ended[id] = d.Task.Phase
			m.checkCascade(t, d.Task)
		case model.Stop:
			if l, ok := m.container(d.Task); !ok || l.Attempt != d.Attempt {
				t.Fatalf("stop of attempt %d of task %d, which does not run", d.Attempt, d.Task)
			}
			delete(m.leaving, d.Task)
			delete(m.returning, d.Task)
			m.checkSlotStop(t, d)
			m.checkMove(t, d)
		case model.Requeue:
			if _, ok := m.container(d.Task); ok || !m.open[d.Task] {
				t.Fatalf("task %d was requeued; running: %v, unfinished: %v", d.Task, ok, m.open[d.Task])
			}
			if d.Reason.Code == model.ReasonRecalled || d.Reason.Code == model.ReasonMoved {
				m.onHold[d.Task] = m.onHold[d.Task] || m.toHold[d.Task]
			}
		}
	}
}

// followCuts records grants that were cut to the use of tasks. It checks that grants are cut
// only with one of the options and never below the highest use, and that no grant exceeds its
// card.
func (m *machine) followCuts(t *rapid.T) {
	for _, g := range m.s.GPUs() {
		for _, r := range g.Residents {
			if task, _ := m.s.Task(r.Task); task.Learner && !m.found[r.Task] && r.Grant > g.Capacity {
				t.Fatalf("the learner %d is granted %s of %s on %s", r.Task, r.Grant, g.Capacity, g.ID)
			}
			l, ok := m.live[r.Task]
			i := slices.IndexFunc(l.Grants, func(of model.Grant) bool { return of.GPU == g.ID })
			if !ok || i < 0 || r.Grant >= l.Grants[i].Memory {
				continue
			}
			if task, _ := m.s.Task(r.Task); m.opt.Shrink == 0 && !task.Learner || r.Grant < r.Peak || r.Peak == 0 {
				t.Fatalf("the grant of task %d on %s was cut from %s to %s; seen %s, shrink %s", r.Task, g.ID, l.Grants[i].Memory, r.Grant, r.Peak, m.opt.Shrink)
			}
			l.Grants[i].Memory = r.Grant
		}
	}
}

// checkMove checks that only the task that was placed last on a GPU is stopped for slowing
// others down, and no task too often.
func (m *machine) checkMove(t *rapid.T, stop model.Stop) {
	if stop.Reason.Code != model.ReasonSlowing {
		return
	}
	if m.moves[stop.Task]++; m.moves[stop.Task] > preempt.EvictMost {
		t.Fatalf("%+v: it was stopped for that %d times", stop, m.moves[stop.Task])
	}
	task, ok := m.s.Task(stop.Task)
	if !ok || !task.Moving && task.Phase != model.Suspending || m.s.Now() > max(task.Last().Started, m.back[stop.Task]).Add(preempt.EvictWithin) {
		t.Fatalf("%+v at %d, and the task is %+v", stop, m.s.Now(), task)
	}
	last := false
	for _, g := range m.s.GPUs() {
		n := len(g.Residents)
		last = last || n > 1 && g.Residents[n-1].Task == stop.Task
	}
	if !last {
		t.Fatalf("%+v, and it came last nowhere", stop)
	}
}

// launch records a launch and checks it against the accounts.
func (m *machine) launch(t *rapid.T, l model.Launch) {
	if _, twice := m.container(l.Task); twice || !m.open[l.Task] {
		t.Fatalf("task %d was launched; already running: %v, unfinished: %v", l.Task, twice, m.open[l.Task])
	}
	if m.tries[l.Task]++; l.Attempt != m.tries[l.Task] {
		t.Fatalf("attempt %d of task %d has the number %d", m.tries[l.Task], l.Task, l.Attempt)
	}
	if m.pausedTill > 0 || m.onHold[l.Task] {
		t.Fatalf("launched %+v; launching is paused until %d, held: %v", l, m.pausedTill, m.onHold)
	}
	if want := m.shape[l.Task]; len(l.Grants) != want.GPUs || want.Exclusive && !l.Alone && !want.NoGPU || !m.up {
		t.Fatalf("launched %+v for %+v, the engine is up: %v", l, want, m.up)
	}
	now := m.s.Now()
	if m.launched > 0 && now < m.launched.Add(m.spacing) {
		t.Fatalf("launched %+v at %d, the last launch was at %d and the next may be %s later", l, now, m.launched, m.spacing)
	}
	m.launched, m.spacing = now, m.opt.Interval
	m.checkHanding(t, l)
	m.live[l.Task] = l
	delete(m.seenHost, l.Task)
	m.checkGPUs(t, l)
	m.checkHost(t, l)
	m.checkLaunchPlace(t, l)
	m.checkLaunchQuota(t, l)
	m.checkLaunchWaits(t, l)
	m.checkFills(t, l)
	if err := m.s.AuditLaunch(l); err != nil {
		t.Fatal(err)
	}
}

// checkHanding checks that the launches in flight do not exceed the limit.
func (m *machine) checkHanding(t *rapid.T, l model.Launch) {
	if m.handsFull() {
		t.Fatalf("launched %+v; on their way to the engine: %v, of at most %d", l, m.onWay, m.opt.LaunchesAtOnce)
	}
	if m.opt.LaunchesAtOnce > 0 {
		m.onWay = append(m.onWay, inflightLaunch{l.Task, l.Attempt})
	}
}

// handsFull reports whether the launches in flight have reached the limit.
func (m *machine) handsFull() bool {
	m.onWay = slices.DeleteFunc(m.onWay, func(h inflightLaunch) bool {
		task := m.s.TaskByID(h.Task)
		return m.live[h.Task].Attempt != h.Attempt || task == nil || task.Phase != model.Launching
	})
	return m.opt.LaunchesAtOnce > 0 && len(m.onWay) >= m.opt.LaunchesAtOnce
}

// checkGPUs checks that the GPUs of a launch, or of a task that resumes, are there and
// have room.
func (m *machine) checkGPUs(t *rapid.T, l model.Launch) {
	seen := map[model.GPUID]bool{}
	for _, grant := range l.Grants {
		i := slices.IndexFunc(m.all, func(g model.GPUInfo) bool { return g.ID == grant.GPU })
		if boot, broken := m.broken[grant.GPU]; broken {
			t.Fatalf("launched %+v on a GPU that is broken since the boot %q", l, boot)
		}
		if i < 0 || seen[grant.GPU] || !m.there[grant.GPU] || m.fault[grant.GPU] || m.shut[grant.GPU] > 0 || m.all[i].Node != m.node(l.Grants[0].GPU) {
			t.Fatalf("launched %+v; there: %v, faulty: %v", l, m.there, m.fault)
		}
		seen[grant.GPU] = true
		left := m.othersLeft(grant.GPU, l.Task)
		sum, tasks, alone := m.alien[grant.GPU]+left+m.opt.Headroom, 0, false
		for _, other := range m.live {
			for _, g := range other.Grants {
				if g.GPU == grant.GPU {
					sum, tasks, alone = sum+g.Memory, tasks+1, alone || other.Alone
				}
			}
		}
		if m.opt.Booking == model.BookSamples && !l.Alone {
			// Only sampled memory counts, and nothing is allocated.
			sum = max(m.used[grant.GPU]-m.behind[grant.GPU][l.Task], m.alien[grant.GPU]+left) + m.opt.Headroom
			if grant.Memory != 0 {
				t.Fatalf("launched %+v: books memory", l)
			}
		}
		if tasks > 1 {
			sum += m.opt.Margin
		}
		if sum > m.all[i].Capacity || alone && tasks > 1 || m.opt.MaxTasks > 0 && tasks > m.opt.MaxTasks {
			t.Fatalf("launched %+v: %d tasks, alone %v, %s of %s on %s", l, tasks, alone, sum, m.all[i].Capacity, grant.GPU)
		}
	}
}

func (m *machine) node(id model.GPUID) string {
	for _, g := range m.all {
		if g.ID == id {
			return g.Node
		}
	}
	return ""
}

// waiting returns the tasks in the queues, in number order.
func (m *machine) waiting() []model.Task {
	return slices.DeleteFunc(m.s.Tasks(), func(t model.Task) bool { return !t.Waiting() })
}

// check checks the invariants after every step.
func (m *machine) check(t *rapid.T, waitedBefore []model.Task) {
	if err := m.s.sound(); err != nil {
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
		if _, away := m.away[task.ID]; away != (task.Phase == model.Suspended) {
			t.Fatalf("task %d is %s, suspended: %v", task.ID, task.Phase, away)
		}
	}
	m.checkBehind(t)
	m.checkHeld(t, tasks)
	m.checkAlarm(t, tasks)
	m.checkIdleness(t)
	m.checkOrder(t, waitedBefore)
}

// checkAlarm checks that a timer was set in time for each change that needs no event.
func (m *machine) checkAlarm(t *rapid.T, tasks []model.Task) {
	due := func(what string, at units.Instant) {
		if at > m.s.Now() && at != units.Never && (m.alarm == 0 || m.alarm > at) {
			t.Fatalf("%s is due at %d, a wake-up was asked for at %d", what, at, m.alarm)
		}
	}
	if at, ok := m.s.NextTimer(); ok {
		due("something", at)
	}
	for _, g := range m.s.GPUs() {
		for _, r := range g.Residents {
			due("the end of a warm-up", r.WarmUntil)
		}
	}
	for _, i := range m.s.breakers.Save().Full {
		due("the test of a full namespace", i.Test)
	}
	for _, task := range tasks {
		due("the end of a back-off", task.NotBefore)
		due("the end of a delay", task.Due)
		due("the end of a slot", m.s.SlotEnds(&task))
		if task.Waiting() {
			due("the next launch", m.nextLaunch())
		}
		if task.Phase == model.Running && task.TimeLimit > 0 {
			due("a time limit", task.Current().Started.Add(task.Current().SuspendedTime).Add(task.TimeLimit))
		}
	}
}

// nextLaunch returns the instant at which the interval allows the next launch.
func (m *machine) nextLaunch() units.Instant {
	if m.launched == 0 {
		return 0
	}
	return m.launched.Add(m.spacing)
}

// recoveryFirst reports whether a task in the recovery queue keeps the main
// queue waiting.
func (m *machine) recoveryFirst() bool {
	return m.opt.Recovery == model.RecoverOriginal && slices.ContainsFunc(m.s.Tasks(), func(t model.Task) bool { return t.Phase == model.Recovering })
}

// checkIdleness checks that no task waits without a reason. A task that fits may wait only for
// an engine that is down or unhealthy, for paused launching, for the end of its back-off, for
// the launch interval, for launches in flight, for the recovery of others if recovery comes
// first, or behind as many tasks that do not fit as the look-ahead allows.
func (m *machine) checkIdleness(t *rapid.T) {
	passed := map[bool]int{} // in the recovery queue or not
	waiting := m.waiting()
	slices.SortFunc(waiting, func(a, b model.Task) int { return m.s.Position(a.ID) - m.s.Position(b.ID) })
	for _, task := range waiting {
		why, ok := m.s.Why(task.ID)
		if !ok || why.Binding.Code == "" || why.Binding.Code == model.ReasonAboutToStart {
			t.Fatalf("task %d waits for nothing: %+v", task.ID, why)
		}
		if m.pausedTill > 0 && m.up && why.Binding.Code != model.ReasonPaused {
			t.Fatalf("launching is paused until %d, and task %d says %+v", m.pausedTill, task.ID, why)
		}
		if m.pausedTill > 0 || task.NotBefore > m.s.Now() || !m.s.CanFit(&task) || m.s.reserve.IsBarred(&task) {
			continue
		}
		if m.s.breakers.IsNamespaceFull(&task) {
			if m.up && m.pausedTill == 0 && !m.s.breakers.Save().Sick.Paused() && len(m.s.GPUList()) > 0 && why.Binding.Code != model.ReasonNamespaceFull {
				t.Fatalf("the namespace of task %d is full, and it says %+v", task.ID, why)
			}
			continue
		}
		if m.s.users.OverQuota(&task).Code != "" {
			m.checkQuota(t, task, why)
			continue
		}
		if m.s.Now() < m.nextLaunch() || m.handsFull() || !why.Recovery && m.recoveryFirst() {
			continue
		}
		if m.s.scheduler.again > m.s.Now() && m.s.placer.Fits(&task, why.Fits) {
			if !m.s.placer.Predicts() || m.s.scheduler.again > m.s.Now().Add(place.ForecastValid) {
				t.Fatalf("task %d fits, and is looked at again at %d only, it is %d", task.ID, m.s.scheduler.again, m.s.Now())
			}
			continue // it fits at a later time, and the timer for the next check is set
		}
		if m.up && !m.s.breakers.Save().Sick.Open(m.s.Now()) && m.s.placer.Fits(&task, why.Fits) && passed[why.Recovery] < m.opt.LookAhead {
			t.Fatalf("task %d fits, and only %d before it do not: %+v", task.ID, passed[why.Recovery], why)
		}
		passed[why.Recovery]++
	}
}

// checkOrder checks that, of two tasks with equal requests that waited at the same time, the
// later one is not launched first, unless it has preempted others, and that recovery goes first
// if the options say so.
func (m *machine) checkOrder(t *rapid.T, before []model.Task) {
	launched := map[model.TaskID]*model.Task{}
	for _, task := range before {
		if now, ok := m.s.Task(task.ID); ok && now.Phase == model.Launching {
			launched[task.ID] = now
			if task.Phase == model.Queued && m.recoveryFirst() {
				t.Fatalf("task %d was launched while others were to recover first", task.ID)
			}
		}
	}
	if m.s.breakers.Save().Sick.Paused() || len(m.kept) > 0 || slices.ContainsFunc(before, func(task model.Task) bool { return len(task.Pinned) > 0 }) {
		return // the next probe is the task whose start is the best evidence
	}
	turns := m.opt.Fair() || m.quotas()
	byNumber := m.opt.Order == "" || m.opt.Order == model.OrderFIFO
	for _, first := range before {
		still, ok := m.s.Task(first.ID)
		if !ok || still.Phase != first.Phase || len(still.Attempts) != len(first.Attempts) || still.NotBefore > m.s.Now() ||
			still.Seat != nil || !reflect.DeepEqual(still.Request, first.Request) || still.NextGrant != first.NextGrant {
			continue
		}
		if byNumber && still.Rank != 0 {
			t.Fatalf("task %d has the rank %d, and the order is by number", still.ID, still.Rank)
		}
		for _, task := range before {
			got := launched[task.ID]
			if got != nil && task.Seat == nil && (still.Rank < got.Rank || still.Rank == got.Rank && still.ID < got.ID) && first.Phase == task.Phase &&
				(!turns || first.User == task.User && first.Account == task.Account) && still.Behind == 0 && got.Behind == 0 &&
				first.Namespace == task.Namespace && m.s.breakers.Namespace(first.Namespace) == nil && // or it is probed in turn
				first.HostMem == task.HostMem && first.HostReserve == task.HostReserve && first.CPUs == task.CPUs && first.NextHostGrant == task.NextHostGrant &&
				first.Priority == task.Priority && first.GPUs == task.GPUs && first.NextGrant == task.NextGrant && got.NextGrant == task.NextGrant && got.WayAt == 0 && first.NextExclusive == task.NextExclusive &&
				(got.Last().Fills == 0 || !first.Terminal && (first.Last() == nil || !first.Last().Stays)) && // this one may not backfill
				(m.s.placer.Policy().Filter == nil || first.Kind == task.Kind && first.Family == task.Family && reflect.DeepEqual(first.Expected, task.Expected) &&
					first.User == task.User && first.Image == task.Image && first.Doubt == task.Doubt) {
				t.Fatalf("task %d was launched before task %d, which wants the same", task.ID, first.ID)
			}
		}
	}
}
