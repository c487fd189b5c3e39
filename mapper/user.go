package mapper

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"carma/internal/units"
	"carma/mapper/ledger"
	"carma/mapper/model"
)

// user is the accounting of one user on one account: past use, for the fair orders, and
// present use, for the quotas. Most users have one account.
type user struct {
	Name    string `json:"name"`
	Account string `json:"account,omitempty"`
	// Use is decayed GPU-seconds, up to users.at.
	Use float64 `json:"use,omitempty"`
	// Standing is the user's rank in the fair orders in the last scheduling cycle; lower
	// goes first. It is kept between cycles, so that the order of the queue changes only
	// in a cycle. If accounts take turns, Top is compared first: the standing of the
	// account, or of a user without one.
	Standing float64 `json:"standing,omitempty"`
	Top      float64 `json:"top,omitempty"`
	// First is the lowest number among the user's waiting tasks in that cycle; it orders
	// users with equal use.
	First model.TaskID `json:"first,omitempty"`

	// Sums over their tasks; computed again when a snapshot is read.
	tasks   int         // placed
	gpus    int         // held, counted per task and GPU
	memory  units.Bytes // sum of the grants
	rate    int64       // sum of the shares, in millionths of a GPU
	waiting int
}

// users holds all users with tasks or with use that has not decayed.
type users struct {
	*ledger.Ledger
	at   units.Instant // the instant up to which Use is computed
	tick units.Instant // the latest instant of the next check of the order
	all  []*user       // by name, then account
	// byParty is for look-ups only.
	byParty map[model.UserAccount]*user
}

func (u *user) userAccount() model.UserAccount {
	return model.UserAccount{User: u.Name, Account: u.Account}
}

func compareUserAccounts(a, b model.UserAccount) int {
	return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Account, b.Account))
}

func newUsers(l *ledger.Ledger) *users {
	return &users{Ledger: l, byParty: map[model.UserAccount]*user{}}
}

// of returns a user, or nil if not known.
func (us *users) of(p model.UserAccount) *user { return us.byParty[p] }

// make returns a user, and adds it if not known.
func (us *users) make(p model.UserAccount) *user {
	if u := us.byParty[p]; u != nil {
		return u
	}
	u := &user{Name: p.User, Account: p.Account}
	i, _ := slices.BinarySearchFunc(us.all, p, func(u *user, p model.UserAccount) int { return compareUserAccounts(u.userAccount(), p) })
	us.all = slices.Insert(us.all, i, u)
	us.byParty[p] = u
	return u
}

// named returns the entries of one user, on all accounts.
func (us *users) named(name string) []*user {
	from, _ := slices.BinarySearchFunc(us.all, name, func(u *user, name string) int { return cmp.Compare(u.Name, name) })
	to := from
	for to < len(us.all) && us.all[to].Name == name {
		to++
	}
	return us.all[from:to]
}

// has sums the usage of a user over all accounts.
func (us *users) has(name string) user {
	sum := user{Name: name}
	for _, u := range us.named(name) {
		sum.include(u)
	}
	return sum
}

// hasAccount sums the usage of an account's users on it.
func (us *users) hasAccount(account string) user {
	sum := user{Account: account}
	for _, u := range us.all {
		if u.Account == account {
			sum.include(u)
		}
	}
	return sum
}

func (u *user) include(o *user) {
	u.Use += o.Use
	u.tasks += o.tasks
	u.gpus += o.gpus
	u.memory += o.memory
	u.rate += o.rate
	u.waiting += o.waiting
}

func (us *users) clone(l *ledger.Ledger) *users {
	c := &users{Ledger: l, at: us.at, tick: us.tick, all: make([]*user, len(us.all)), byParty: make(map[model.UserAccount]*user, len(us.all))}
	for i, u := range us.all {
		c.all[i] = new(*u)
		c.byParty[u.userAccount()] = c.all[i]
	}
	return c
}

// settle charges the use since the last call, and lets older use decay. All use decays at
// the same rate, so users without tasks keep their order.
func (us *users) settle(now units.Instant, halfLife time.Duration) {
	dt := now.Sub(us.at).Seconds()
	us.at = now
	if dt <= 0 {
		return
	}
	left := math.Exp2(-dt / halfLife.Seconds())
	// The integral of a constant rate under decay.
	gained := (1 - left) * halfLife.Seconds() / math.Ln2
	for _, u := range us.all {
		u.Use = u.Use*left + float64(u.rate)/model.WholeGPU*gained
	}
}

// forget drops the users without tasks whose use has decayed.
func (us *users) forget() {
	us.all = slices.DeleteFunc(us.all, func(u *user) bool {
		gone := u.tasks == 0 && u.waiting == 0 && u.Use < leastUse
		if gone {
			delete(us.byParty, u.userAccount())
		}
		return gone
	})
}

// leastUse is the use, in GPU-seconds, below which a user is forgotten.
const leastUse = 1

// occupy adds a placed task to its user's accounting; vacate removes it. A change of its
// grants comes between the two.
func (us *users) occupy(t *model.Task) {
	us.settle(us.Now(), us.Options().HalfLife())
	u := us.make(t.UserAccount())
	u.tasks++
	for _, grant := range t.Current().Grants {
		g := us.GPU(grant.GPU)
		r := g.Resident(t.ID)
		need := units.Bytes(0)
		if us.Options().Booking == model.BookSamples {
			need = t.NextGrant
		}
		r.Share = ledger.ShareOn(g, r, need)
		u.count(r, 1)
	}
	us.charge(t, u, 1)
}

func (us *users) vacate(t *model.Task) {
	us.settle(us.Now(), us.Options().HalfLife())
	u := us.make(t.UserAccount())
	u.tasks--
	for _, grant := range t.Current().Grants {
		u.count(us.GPU(grant.GPU).Resident(t.ID), -1)
	}
	us.charge(t, u, -1)
}

// charge adds a placed task without a GPU to its user's accounting, or removes it.
func (us *users) charge(t *model.Task, u *user, sign int64) {
	if t.GPUs > 0 {
		return
	}
	h := us.Host(t.Current().Host.Node)
	r := h.Resident(t.ID)
	if sign > 0 {
		r.Share = ledger.LeastShare
		if h.Memory > 0 {
			r.Share = max(ledger.LeastShare, int64(model.WholeGPU*min(1, float64(r.Memory)/float64(h.Memory))))
		}
	}
	u.rate += sign * r.Share
}

func (u *user) count(r *model.Resident, sign int) {
	u.gpus += sign
	u.memory += units.Bytes(sign) * r.Grant
	u.rate += int64(sign) * r.Share
}

// count computes the users' accounting from the ledger.
func (q *schedulingQueue) count(us *users) {
	for _, g := range q.GPUList() {
		for i := range g.Residents {
			r := &g.Residents[i]
			if t := q.TaskByID(r.Task); t != nil {
				u := us.make(t.UserAccount())
				u.count(r, 1)
				if a := t.Current(); a != nil && a.Grants[0].GPU == g.ID {
					u.tasks++
				}
			}
		}
	}
	for _, t := range q.WithoutGPU() {
		u := us.make(t.UserAccount())
		u.tasks++
		u.rate += q.Host(t.Current().Host.Node).Resident(t.ID).Share
	}
	for i := range q.waiting.lanes {
		for _, t := range q.waiting.lanes[i].waiting() {
			us.make(t.UserAccount()).waiting++
		}
	}
}

// auditUsers compares the users' accounting with the ledger.
func (q *schedulingQueue) auditUsers() error {
	fresh := newUsers(q.Ledger)
	q.count(fresh)
	for _, u := range fresh.all {
		if q.users.of(u.userAccount()) == nil {
			return fmt.Errorf("nothing is kept about user %q, who has tasks", u.Name)
		}
	}
	for i, u := range q.users.all {
		want := user{Name: u.Name, Account: u.Account, Use: u.Use, Standing: u.Standing, Top: u.Top, First: u.First}
		if f := fresh.of(u.userAccount()); f != nil {
			want.tasks, want.gpus, want.memory, want.rate, want.waiting = f.tasks, f.gpus, f.memory, f.rate, f.waiting
		}
		if *u != want || q.users.of(u.userAccount()) != u || i > 0 && compareUserAccounts(q.users.all[i-1].userAccount(), u.userAccount()) >= 0 {
			return fmt.Errorf("user %q is kept as %+v, the ledger has %+v", u.Name, *u, want)
		}
		if !(u.Use >= 0) {
			return fmt.Errorf("user %q has used %v GPU-seconds", u.Name, u.Use)
		}
	}
	return q.waiting.audit()
}

// usersSnapshot is the users' section of a snapshot.
type usersSnapshot struct {
	Users    []*user       `json:"users,omitempty"`
	UsersAt  units.Instant `json:"users_at,omitempty"`
	FairTick units.Instant `json:"fair_tick,omitempty"`
}

func (us *users) snapshot() usersSnapshot {
	return usersSnapshot{Users: us.all, UsersAt: us.at, FairTick: us.tick}
}

func (us *users) restore(snap usersSnapshot) error {
	us.at, us.tick = min(snap.UsersAt, us.Now()), snap.FairTick
	for _, u := range snap.Users {
		if u == nil || us.of(u.userAccount()) != nil || u.Use < 0 || u.Standing < 0 || u.Top < 0 || u.First < 0 {
			return fmt.Errorf("a user is empty, there twice or has used less than nothing")
		}
		us.all, us.byParty[u.userAccount()] = append(us.all, u), u
	}
	slices.SortFunc(us.all, func(a, b *user) int { return compareUserAccounts(a.userAccount(), b.userAccount()) })
	return nil
}
