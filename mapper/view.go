package mapper

import (
	"carma/internal/units"
	"carma/mapper/breaker"
	"carma/mapper/fairshare"
	"carma/mapper/model"
	"carma/mapper/predict"
)

// Placed returns the number of placed tasks.
func (s *State) Placed() int {
	return s.users.Placed()
}

// Clone returns a deep copy. Clone followed by Step answers what-if questions.
func (s *State) Clone() *State {
	c := *s
	c.Ledger = s.Ledger.Clone()
	c.predictor, c.breakers = s.predictor.Clone(c.Ledger), s.breakers.Clone(c.Ledger)
	c.users = s.users.Clone(c.Ledger)
	c.queue = s.queue.Clone(c.Ledger, c.users, c.predictor)
	c.reserve = s.reserve.Clone(c.Ledger, c.predictor, c.queue)
	c.placer = s.placer.Clone(c.Ledger, c.predictor, c.queue, c.reserve)
	c.wire()
	c.attempts.Restore(s.attempts.Save())
	c.scheduler.again = s.scheduler.again
	return &c
}

// Account returns the use by a user, which is zero for an unknown user.
func (s *State) Account(name string) fairshare.Account { return s.users.Account(name) }

// GroupAccount returns the use by the users of an account on it.
func (s *State) GroupAccount(account string) fairshare.Account { return s.users.GroupAccount(account) }

// Accounts lists all known users, then all known accounts, each by name.
func (s *State) Accounts() []fairshare.Account { return s.users.Accounts() }

// Measured returns the raw estimate and the observed peak of each kind of task, the
// oldest first. The caller must not change the list.
func (s *State) Measured() []predict.EstimateError { return s.predictor.Measured() }

// Runs returns the peak of the earlier runs of a program, one for each batch size, in no
// particular order.
func (s *State) Runs(program string) []predict.Run { return s.predictor.Runs(program) }

// Recalls reports whether earlier runs of a kind decide the grant of its next run.
func (s *State) Recalls(kind string) bool { return s.predictor.Recalls(kind) }

// Speed returns the speed of a task, or false if its container does not run.
func (s *State) Speed(id model.TaskID) (v predict.SpeedView, ok bool) { return s.predictor.Speed(id) }

// EngineDown returns why the engine is down, or the zero Reason if it is up.
func (s *State) EngineDown() model.Reason { return s.breakers.EngineDown() }

// Breakers lists the unhealthy engine and GPUs, the engine first.
func (s *State) Breakers() []breaker.BreakerView { return s.breakers.Breakers() }

// CanaryDue reports whether a canary must be started now, see [model.CanaryEnded].
func (s *State) CanaryDue() bool { return s.breakers.CanaryDue() }

// Position returns a waiting task's place in the order of all queues, from 1, or 0.
func (s *State) Position(id model.TaskID) int { return s.queue.Position(id) }

// ReservedFor returns the task for which a GPU is nominated or reserved, or 0.
func (s *State) ReservedFor(id model.GPUID) model.TaskID { return s.reserve.ReservedFor(id) }

// Reservations lists copies of the reservations, the earliest begin first.
func (s *State) Reservations() []model.Reservation { return s.reserve.Reservations() }

// LastReservation returns the highest reservation number so far.
func (s *State) LastReservation() int { return s.reserve.LastReservation() }

// QueueLen returns the number of waiting tasks.
func (s *State) QueueLen() int { return s.queue.QueueLen() }

// Ready reports whether an unfinished task has no unmet dependency, no delay left and no
// hold.
func (s *State) Ready(id model.TaskID) bool { return s.queue.Ready(id) }

// HelpersFit reports whether a machine has room for a new allocation to the helpers of a
// suite in place of their present one. If not, the reason says what is missing. It
// allocates nothing.
func (s *State) HelpersFit(node, suite string, memory units.Bytes, cpus int64) model.Reason {
	return s.reserve.HelpersFit(node, suite, memory, cpus)
}

// CannotResize says why a running task cannot have another allocation on its machine. It
// returns the zero Reason if it can, or if it does not run.
func (s *State) CannotResize(id model.TaskID, ask model.HostAsk) model.Reason {
	return s.reserve.CannotResize(id, ask)
}

// Options returns a copy of the present options.
func (s *State) Options() model.Options { return s.Ledger.Options().Clone() }
