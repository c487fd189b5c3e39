package mapper

import (
	"cmp"
	"slices"

	"carma/internal/units"
	"carma/mapper/model"
)

// Now returns the time of the latest event.
func (a *agenda) Now() units.Instant { return a.now }

// Options returns the present options.
func (l *ledger) Options() model.Options { return l.opt.Clone() }

// Task returns an unfinished task. The caller must not change it, and must not keep it
// over the next Step.
func (x *taskIndex) Task(id model.TaskID) (*model.Task, bool) {
	t, ok := x.tasks[id]
	return t, ok
}

// Tasks returns copies of all unfinished tasks by number.
func (x *taskIndex) Tasks() []model.Task {
	all := make([]model.Task, 0, len(x.tasks))
	for _, t := range x.tasks {
		all = append(all, *t.Clone())
	}
	slices.SortFunc(all, func(a, b model.Task) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

// GPUs returns copies of the ledger's entries in index order.
func (l *ledger) GPUs() []model.GPU {
	all := make([]model.GPU, len(l.gpus))
	for i, g := range l.gpus {
		all[i] = *g.Clone()
	}
	return all
}

// NumGPUs returns the number of GPUs in the ledger.
func (l *ledger) NumGPUs() int { return len(l.gpus) }

// Crowded returns copies of the GPUs with several tasks, in index order.
func (l *ledger) Crowded() []model.GPU {
	var all []model.GPU
	for _, g := range l.gpus {
		if len(g.Residents) > 1 {
			all = append(all, *g.Clone())
		}
	}
	return all
}

// ReservedFor returns the task for which a GPU is nominated or reserved, or 0.
func (q *schedulingQueue) ReservedFor(id model.GPUID) model.TaskID {
	if g := q.byID[id]; g != nil {
		return q.reservedForTask(g)
	}
	return 0
}

// Reserved returns the sum of the grants on a GPU, or 0 if the GPU is not known.
func (l *ledger) Reserved(id model.GPUID) units.Bytes {
	if g := l.byID[id]; g != nil {
		return g.Reserved
	}
	return 0
}

// Position returns a waiting task's place in the order of all queues, from 1, or 0.
func (q *schedulingQueue) Position(id model.TaskID) int {
	t := q.tasks[id]
	if t == nil || !t.Waiting() {
		return 0
	}
	return q.waiting.position(t)
}

// QueueLen returns the number of waiting tasks.
func (q *schedulingQueue) QueueLen() int { return q.waiting.len() }

// Placed returns the number of placed tasks.
func (s *State) Placed() int {
	n := 0
	for _, u := range s.users.all {
		n += u.tasks
	}
	return n
}

// Suspended returns the suspended tasks, by number, and how many of them wait to resume.
// The caller must not change them, and must not keep them over the next Step.
func (l *ledger) Suspended() (all []*model.Task, waiting int) {
	for _, t := range l.tasks { // sorted below
		if t.Phase == model.Suspended {
			all = append(all, t)
			if t.Waiting() {
				waiting++
			}
		}
	}
	slices.SortFunc(all, func(a, b *model.Task) int { return cmp.Compare(a.ID, b.ID) })
	return all, waiting
}

// Unfinished returns the number of unfinished tasks.
func (x *taskIndex) Unfinished() int { return len(x.tasks) }

// LastID returns the highest task number ever used.
func (x *taskIndex) LastID() model.TaskID { return x.lastID }

// NextTimer returns the instant at which a TimerFired event is due, or false if none is.
func (a *agenda) NextTimer() (units.Instant, bool) {
	if len(a.timers) == 0 {
		return 0, false
	}
	return a.timers[0].At, true
}

// Clone returns a deep copy. Clone followed by Step answers what-if questions.
func (s *State) Clone() *State {
	c := *s
	c.ledger, c.step = s.ledger.clone(), step{}
	c.inflight = slices.Clone(s.inflight)
	c.predictor, c.breakers = s.predictor.clone(c.ledger), s.breakers.clone(c.ledger)
	c.users = s.users.clone(c.ledger)
	c.queue = s.queue.clone(c.ledger, c.users, c.predictor)
	c.placer = newPlacer(c.ledger, c.predictor, c.queue, s.placer.policy)
	c.wire()
	return &c
}

// DecisionFormat returns the format of the decisions that led to the state, see the
// constant.
func (a *agenda) DecisionFormat() int { return a.format }

// Account returns the use by a user, which is zero for an unknown user.
func (s *State) Account(name string) Account { return s.users.Account(name) }

// GroupAccount returns the use by the users of an account on it.
func (s *State) GroupAccount(account string) Account { return s.users.GroupAccount(account) }

// Accounts lists all known users, then all known accounts, each by name.
func (s *State) Accounts() []Account { return s.users.Accounts() }

// Measured returns the raw estimate and the observed peak of each kind of task, the
// oldest first. The caller must not change the list.
func (s *State) Measured() []EstimateError { return s.predictor.Measured() }

// Runs returns the peak of the earlier runs of a program, one for each batch size, in no
// particular order.
func (s *State) Runs(program string) []Run { return s.predictor.Runs(program) }

// Recalls reports whether earlier runs of a kind decide the grant of its next run.
func (s *State) Recalls(kind string) bool { return s.predictor.Recalls(kind) }

// Speed returns the speed of a task, or false if its container does not run.
func (s *State) Speed(id model.TaskID) (v SpeedView, ok bool) { return s.predictor.Speed(id) }

// EngineDown returns why the engine is down, or the zero Reason if it is up.
func (s *State) EngineDown() model.Reason { return s.breakers.engineDown }

// Breakers lists the unhealthy engine and GPUs, the engine first.
func (s *State) Breakers() []BreakerView { return s.breakers.Breakers() }

// CanaryDue reports whether a canary must be started now, see [model.CanaryEnded].
func (s *State) CanaryDue() bool { return s.breakers.CanaryDue() }

// Position returns a waiting task's place in the order of all queues, from 1, or 0.
func (s *State) Position(id model.TaskID) int { return s.queue.Position(id) }

// ReservedFor returns the task for which a GPU is nominated or reserved, or 0.
func (s *State) ReservedFor(id model.GPUID) model.TaskID { return s.queue.ReservedFor(id) }

// Reservations lists copies of the reservations, the earliest begin first.
func (s *State) Reservations() []model.Reservation { return s.queue.Reservations() }

// LastReservation returns the highest reservation number so far.
func (s *State) LastReservation() int { return s.queue.LastReservation() }

// QueueLen returns the number of waiting tasks.
func (s *State) QueueLen() int { return s.queue.QueueLen() }

// Ready reports whether an unfinished task has no unmet dependency, no delay left and no
// hold.
func (s *State) Ready(id model.TaskID) bool { return s.queue.Ready(id) }

// HelpersFit reports whether a machine has room for a new allocation to the helpers of a
// suite in place of their present one. If not, the reason says what is missing. It
// allocates nothing.
func (s *State) HelpersFit(node, suite string, memory units.Bytes, cpus int64) model.Reason {
	return s.queue.HelpersFit(node, suite, memory, cpus)
}

// CannotResize says why a running task cannot have another allocation on its machine. It
// returns the zero Reason if it can, or if it does not run.
func (s *State) CannotResize(id model.TaskID, ask model.HostAsk) model.Reason {
	return s.queue.CannotResize(id, ask)
}
