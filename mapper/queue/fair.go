package queue

import (
	"cmp"
	"slices"
	"time"

	"carma/mapper/fairshare"
	"carma/mapper/ledger"
	"carma/mapper/model"
)

// fairTick is the interval at which the order is recomputed without any event: it changes
// with time, and may bring a fitting task within the look-ahead.
const fairTick = time.Minute

// takesTurns returns the users that the queue is ordered by, or nil.
func (q *Queue) takesTurns() *fairshare.Users {
	if q.Options().Fair() {
		return q.users
	}
	return nil
}

// SortUsers updates the use of all users and sorts the queue accordingly. It sorts the
// waiting users, not their tasks.
func (q *Queue) SortUsers() {
	q.users.UpdateRanks()
	if q.Options().Fair() {
		q.waiting.firsts()
	}
	q.users.Forget()
	q.waiting.sort()
}

// UpdateShareRank moves a user's line after a launch, and reports whether the order of
// the lane's lines has changed.
func (q *Queue) UpdateShareRank(t *model.Task, l *Lane) bool {
	if !q.Options().Fair() {
		return false
	}
	q.users.ShareRank()
	before := slices.Clone(l.lines)
	q.waiting.sort()
	return !slices.Equal(before, l.lines)
}

// FairTick sets a timer while the order may bring a task within the look-ahead.
func (q *Queue) FairTick() {
	if !q.Options().Fair() || q.reach[1] == 0 || !q.users.TickDue() || !q.users.AnyCharged() ||
		!slices.ContainsFunc(q.waiting.main(), func(l Lane) bool { return l.Users() > 1 }) {
		return
	}
	next := q.Now().Add(fairTick)
	q.users.SetTick(next)
	q.SetTimer(next, ledger.Timer{})
}

// overtakers counts the tasks of others that fair share puts before a task though they
// were submitted after it, and returns the first of their users.
func (q *Queue) overtakers(t *model.Task) (n int, of *fairshare.User) {
	if !q.Options().Fair() || !t.Waiting() || t.GoesFirst() {
		return 0, nil
	}
	for _, line := range q.waiting.lanes[LaneOf(t)].lines {
		if line.user.UserAccount() == t.UserAccount() {
			break
		}
		i, _ := slices.BinarySearchFunc(line.Waiting(), t, byPosition)
		if later := line.Len() - i; later > 0 {
			n += later
			of = cmp.Or(of, line.user)
		}
	}
	return n, of
}

// Turn says who goes before a task by fair share despite a later submission: Later tasks,
// the first of them User's. Use is the use of that user, OwnUse the use of the task's
// user Own, in decayed GPU-seconds.
type Turn struct {
	Later  int
	User   string
	Use    float64
	Own    string
	OwnUse float64
	// Account and OwnAccount are set if the use is the use of an account that takes turns
	// as one.
	Account, OwnAccount string
}

// TurnBefore says who goes before a task by fair share, or returns nil.
func (q *Queue) TurnBefore(t *model.Task) *Turn {
	n, other := q.overtakers(t)
	if n == 0 {
		return nil
	}
	turn := &Turn{Later: n, User: other.Name, Use: q.users.SumOf(other.Name).Use, Own: t.User, OwnUse: q.users.SumOf(t.User).Use}
	if q.Options().AccountWeight(other.Account) > 0 {
		turn.Account, turn.Use = other.Account, q.users.SumOfAccount(other.Account).Use
	}
	if q.Options().AccountWeight(t.Account) > 0 {
		turn.OwnAccount, turn.OwnUse = t.Account, q.users.SumOfAccount(t.Account).Use
	}
	return turn
}

// Patience returns for how long a task that does not fit may be overtaken. In the order
// fair-sjf a user without running tasks is not overtaken by users who have some: their
// first task waits for one of those tasks, and not for their whole queue.
func (q *Queue) Patience(t *model.Task) time.Duration {
	if q.Options().Order != model.OrderFairSJF || t.Phase != model.Queued || q.users.SumOf(t.User).Tasks() > 0 {
		return q.Options().Ageing
	}
	if lane := &q.waiting.lanes[LaneOf(t)]; lane.Users() < 2 && !q.users.OthersRun(t) {
		return q.Options().Ageing
	}
	return 0
}
