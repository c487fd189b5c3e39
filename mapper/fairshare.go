package mapper

import (
	"cmp"
	"slices"
	"time"

	"carma/mapper/ledger"
	"carma/mapper/model"
)

// fairAdvance is the time for which a placed task is charged its share in advance. Use
// grows only with time; without the advance, all GPUs that become free at once would go
// to the user with the least use.
const fairAdvance = 10 * time.Minute

// fairTick is the interval at which the order is recomputed without any event: it changes
// with time, and may bring a fitting task within the look-ahead.
const fairTick = time.Minute

// takesTurns returns the users that the queue is ordered by, or nil.
func (q *schedulingQueue) takesTurns() *users {
	if q.Options().Fair() {
		return q.users
	}
	return nil
}

// charge returns past use plus the shares of the current tasks over fairAdvance.
func (u *user) charge() float64 { return u.Use + float64(u.rate)/model.WholeGPU*fairAdvance.Seconds() }

// shareRank computes the places of all users from past use and their current tasks. A
// user with several accounts is ranked by the sum over them, except for accounts that
// take turns as one.
func (us *users) shareRank() {
	tops := map[string]float64{} // of accounts that take turns as one
	for _, u := range us.all {
		if w := us.Options().AccountWeight(u.Account); w > 0 {
			tops[u.Account] += u.charge() / w
		}
	}
	for from := 0; from < len(us.all); {
		to, own := from, 0.0
		for ; to < len(us.all) && us.all[to].Name == us.all[from].Name; to++ {
			if u := us.all[to]; us.Options().AccountWeight(u.Account) == 0 {
				own += u.charge()
			}
		}
		weight := us.Options().Weight(us.all[from].Name)
		for _, u := range us.all[from:to] {
			u.Standing, u.Top = own/weight, 0
			if top, shared := tops[u.Account]; shared {
				u.Standing, u.Top = u.charge()/weight, top
			} else if len(us.Options().FairAccounts) > 0 {
				u.Top = u.Standing
			}
		}
		from = to
	}
}

// compareUsers compares users by fair share. A nil user counts as new.
func compareUsers(a, b *user) int {
	if a == nil || b == nil {
		var none user
		a, b = cmp.Or(a, &none), cmp.Or(b, &none)
	}
	return cmp.Or(cmp.Compare(a.Top, b.Top), cmp.Compare(a.Standing, b.Standing), cmp.Compare(a.First, b.First), compareUserAccounts(a.userAccount(), b.userAccount()))
}

// sortUsers updates the use of all users and sorts the queue accordingly. It sorts the
// waiting users, not their tasks.
func (q *schedulingQueue) sortUsers() {
	q.users.settle(q.Now(), q.Options().HalfLife())
	if q.Options().Fair() {
		q.users.shareRank()
		for _, u := range q.users.all {
			u.First = 0
		}
		q.waiting.firsts()
	}
	q.users.forget()
	q.waiting.sort()
}

// updateShareRank moves a user's line after a launch, and reports whether the order of
// the lane's lines has changed.
func (q *schedulingQueue) updateShareRank(t *model.Task, l *lane) bool {
	if !q.Options().Fair() {
		return false
	}
	q.users.shareRank()
	before := slices.Clone(l.lines)
	q.waiting.sort()
	return !slices.Equal(before, l.lines)
}

// fairTick sets a timer while the order may bring a task within the look-ahead.
func (q *schedulingQueue) fairTick() {
	if !q.Options().Fair() || q.reach[1] == 0 || q.users.tick > q.Now() ||
		!slices.ContainsFunc(q.users.all, func(u *user) bool { return u.rate > 0 }) ||
		!slices.ContainsFunc(q.waiting.main(), func(l lane) bool { return l.users() > 1 }) {
		return
	}
	q.users.tick = q.Now().Add(fairTick)
	q.SetTimer(q.users.tick, ledger.Timer{})
}

// overtakers counts the tasks of others that fair share puts before a task though they
// were submitted after it, and returns the first of their users.
func (q *schedulingQueue) overtakers(t *model.Task) (n int, of *user) {
	if !q.Options().Fair() || !t.Waiting() || t.GoesFirst() {
		return 0, nil
	}
	for _, line := range q.waiting.lanes[laneOf(t)].lines {
		if line.user.userAccount() == t.UserAccount() {
			break
		}
		i, _ := slices.BinarySearchFunc(line.waiting(), t, byPosition)
		if later := line.len() - i; later > 0 {
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

// fairly says who goes before a task by fair share, or returns nil.
func (q *schedulingQueue) fairly(t *model.Task) *Turn {
	n, other := q.overtakers(t)
	if n == 0 {
		return nil
	}
	turn := &Turn{Later: n, User: other.Name, Use: q.users.has(other.Name).Use, Own: t.User, OwnUse: q.users.has(t.User).Use}
	if q.Options().AccountWeight(other.Account) > 0 {
		turn.Account, turn.Use = other.Account, q.users.hasAccount(other.Account).Use
	}
	if q.Options().AccountWeight(t.Account) > 0 {
		turn.OwnAccount, turn.OwnUse = t.Account, q.users.hasAccount(t.Account).Use
	}
	return turn
}

// patience returns for how long a task that does not fit may be overtaken. In the order
// fair-sjf a user without running tasks is not overtaken by users who have some: their
// first task waits for one of those tasks, and not for their whole queue.
func (q *schedulingQueue) patience(t *model.Task) time.Duration {
	if q.Options().Order != model.OrderFairSJF || t.Phase != model.Queued || q.users.has(t.User).tasks > 0 {
		return q.Options().Ageing
	}
	if lane := &q.waiting.lanes[laneOf(t)]; lane.users() < 2 && !q.users.othersRun(t) {
		return q.Options().Ageing
	}
	return 0
}

// othersRun reports whether tasks of other users are placed.
func (us *users) othersRun(t *model.Task) bool {
	return slices.ContainsFunc(us.all, func(u *user) bool { return u.Name != t.User && u.tasks > 0 })
}
