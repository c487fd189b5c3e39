package fairshare

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

// fairAdvance is the time for which a placed task is charged its share in advance. Use
// grows only with time; without the advance, all GPUs that become free at once would go
// to the user with the least use.
const fairAdvance = 10 * time.Minute

// charge returns past use plus the shares of the current tasks over fairAdvance.
func (u *User) charge() float64 { return u.Use + float64(u.rate)/model.WholeGPU*fairAdvance.Seconds() }

// ShareRank computes the places of all users from past use and their current tasks. A
// user with several accounts is ranked by the sum over them, except for accounts that
// take turns as one.
func (us *Users) ShareRank() {
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

// CompareUsers compares users by fair share. A nil user counts as new.
func CompareUsers(a, b *User) int {
	if a == nil || b == nil {
		var none User
		a, b = cmp.Or(a, &none), cmp.Or(b, &none)
	}
	return cmp.Or(cmp.Compare(a.Top, b.Top), cmp.Compare(a.Standing, b.Standing), cmp.Compare(a.First, b.First), compareUserAccounts(a.UserAccount(), b.UserAccount()))
}

// OthersRun reports whether tasks of other users are placed.
func (us *Users) OthersRun(t *model.Task) bool {
	return slices.ContainsFunc(us.all, func(u *User) bool { return u.Name != t.User && u.tasks > 0 })
}

// Regrant changes the grant of a placed task on one of its GPUs, and reports whether it
// did: recorded changes are applied after the event.
func (us *Users) Regrant(t *model.Task, g *model.GPU, grant units.Bytes) bool {
	a := t.Current()
	if _, ok := us.Resolve(model.GrantChanged{Task: t.ID, Attempt: a.N}); !ok {
		return false
	}
	us.Rebook(t, g, grant)
	us.Decide(model.GrantChanged{Task: t.ID, Attempt: a.N, Grants: slices.Clone(a.Grants)})
	return true
}

// Rebook changes the grant of a placed task on a GPU.
func (us *Users) Rebook(t *model.Task, g *model.GPU, grant units.Bytes) {
	us.Release(t)
	r := g.Resident(t.ID)
	g.Reserved += grant - r.Grant
	r.Grant = grant
	g.Settle()
	us.Occupy(t)
	grants := slices.Clone(t.Current().Grants) // copies of the task share the list
	for i := range grants {
		if grants[i].GPU == g.ID {
			grants[i].Memory = grant
		}
	}
	t.Current().Grants = grants
}

// RebookHost replaces the allocation of a running task on its machine.
func (us *Users) RebookHost(t *model.Task, share model.HostShare) {
	a := t.Current()
	if t.GPUs == 0 {
		us.Release(t)
		defer us.Occupy(t)
	}
	was := a.Host
	a.Host, a.Resized = share, true
	us.MarkDirty()
	h := us.Host(was.Node)
	if h == nil || h.Resident(t.ID) == nil {
		us.AllocateHost(t, share)
		return
	}
	r := h.Resident(t.ID)
	r.Memory, r.CPUs = share.Memory, share.CPUs
	h.Settle()
}

func (u User) account(group bool) Account {
	return Account{
		Name: cmp.Or(u.Name, u.Account), Group: group, Tasks: u.tasks, Waiting: u.waiting, GPUs: u.gpus, Memory: u.memory, Use: u.Use,
	}
}

// User is the accounting of one user on one account: past use, for the fair orders, and
// present use, for the quotas. Most users have one account.
type User struct {
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

// Users holds all users with tasks or with use that has not decayed.
type Users struct {
	*ledger.Ledger
	at   units.Instant // the instant up to which Use is computed
	tick units.Instant // the latest instant of the next check of the order
	all  []*User       // by name, then account
	// byParty is for look-ups only.
	byParty map[model.UserAccount]*User
}

// UserAccount returns the key of the entry.
func (u *User) UserAccount() model.UserAccount {
	return model.UserAccount{User: u.Name, Account: u.Account}
}

func compareUserAccounts(a, b model.UserAccount) int {
	return cmp.Or(cmp.Compare(a.User, b.User), cmp.Compare(a.Account, b.Account))
}

// New returns an empty accounting.
func New(l *ledger.Ledger) *Users {
	return &Users{Ledger: l, byParty: map[model.UserAccount]*User{}}
}

// Of returns a user, or nil if not known.
func (us *Users) Of(p model.UserAccount) *User { return us.byParty[p] }

// Make returns a user, and adds it if not known.
func (us *Users) Make(p model.UserAccount) *User {
	if u := us.byParty[p]; u != nil {
		return u
	}
	u := &User{Name: p.User, Account: p.Account}
	i, _ := slices.BinarySearchFunc(us.all, p, func(u *User, p model.UserAccount) int { return compareUserAccounts(u.UserAccount(), p) })
	us.all = slices.Insert(us.all, i, u)
	us.byParty[p] = u
	return u
}

// named returns the entries of one user, on all accounts.
func (us *Users) named(name string) []*User {
	from, _ := slices.BinarySearchFunc(us.all, name, func(u *User, name string) int { return cmp.Compare(u.Name, name) })
	to := from
	for to < len(us.all) && us.all[to].Name == name {
		to++
	}
	return us.all[from:to]
}

// SumOf sums the usage of a user over all accounts.
func (us *Users) SumOf(name string) User {
	sum := User{Name: name}
	for _, u := range us.named(name) {
		sum.include(u)
	}
	return sum
}

// SumOfAccount sums the usage of an account's users on it.
func (us *Users) SumOfAccount(account string) User {
	sum := User{Account: account}
	for _, u := range us.all {
		if u.Account == account {
			sum.include(u)
		}
	}
	return sum
}

func (u *User) include(o *User) {
	u.Use += o.Use
	u.tasks += o.tasks
	u.gpus += o.gpus
	u.memory += o.memory
	u.rate += o.rate
	u.waiting += o.waiting
}

// Clone returns a deep copy for a copy of the ledger.
func (us *Users) Clone(l *ledger.Ledger) *Users {
	c := &Users{Ledger: l, at: us.at, tick: us.tick, all: make([]*User, len(us.all)), byParty: make(map[model.UserAccount]*User, len(us.all))}
	for i, u := range us.all {
		c.all[i] = new(*u)
		c.byParty[u.UserAccount()] = c.all[i]
	}
	return c
}

// Settle charges the use since the last call, and lets older use decay. All use decays at
// the same rate, so users without tasks keep their order.
func (us *Users) Settle(now units.Instant, halfLife time.Duration) {
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

// Forget drops the users without tasks whose use has decayed.
func (us *Users) Forget() {
	us.all = slices.DeleteFunc(us.all, func(u *User) bool {
		gone := u.tasks == 0 && u.waiting == 0 && u.Use < leastUse
		if gone {
			delete(us.byParty, u.UserAccount())
		}
		return gone
	})
}

// leastUse is the use, in GPU-seconds, below which a user is forgotten.
const leastUse = 1

// Occupy adds a placed task to its user's accounting; Release removes it. A change of its
// grants comes between the two.
func (us *Users) Occupy(t *model.Task) {
	us.Settle(us.Now(), us.Options().HalfLife())
	u := us.Make(t.UserAccount())
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

// Release removes a placed task from its user's accounting.
func (us *Users) Release(t *model.Task) {
	us.Settle(us.Now(), us.Options().HalfLife())
	u := us.Make(t.UserAccount())
	u.tasks--
	for _, grant := range t.Current().Grants {
		u.count(us.GPU(grant.GPU).Resident(t.ID), -1)
	}
	us.charge(t, u, -1)
}

// charge adds a placed task without a GPU to its user's accounting, or removes it.
func (us *Users) charge(t *model.Task, u *User, sign int64) {
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

func (u *User) count(r *model.Resident, sign int) {
	u.gpus += sign
	u.memory += units.Bytes(sign) * r.Grant
	u.rate += int64(sign) * r.Share
}

// Enqueued counts a waiting task of a user; Dequeued ends that.
func (us *Users) Enqueued(t *model.Task) { us.Make(t.UserAccount()).waiting++ }

// Dequeued counts a task of a user as waiting no longer.
func (us *Users) Dequeued(t *model.Task) { us.Make(t.UserAccount()).waiting-- }

// Placed returns the number of placed tasks of all users.
func (us *Users) Placed() int {
	n := 0
	for _, u := range us.all {
		n += u.tasks
	}
	return n
}

// AnyCharged reports whether a user is charged for placed tasks.
func (us *Users) AnyCharged() bool {
	return slices.ContainsFunc(us.all, func(u *User) bool { return u.rate > 0 })
}

// TickDue reports whether the order of the users is to be checked again.
func (us *Users) TickDue() bool { return us.tick <= us.Now() }

// SetTick sets the instant of the next check of the order.
func (us *Users) SetTick(at units.Instant) { us.tick = at }

// Tasks returns the number of the user's placed tasks.
func (u User) Tasks() int { return u.tasks }

// NoteFirst records the number of a waiting task, of which the lowest counts.
func (u *User) NoteFirst(id model.TaskID) {
	if u.First == 0 || id < u.First {
		u.First = id
	}
}

// UpdateRanks computes the use and the ranks of all users at the present instant. It
// clears First, which the queue sets again.
func (us *Users) UpdateRanks() {
	us.Settle(us.Now(), us.Options().HalfLife())
	if us.Options().Fair() {
		us.ShareRank()
		for _, u := range us.all {
			u.First = 0
		}
	}
}

// Recount computes the users' accounting from the ledger and the waiting tasks.
func (us *Users) Recount(waiting []*model.Task) {
	for _, g := range us.GPUList() {
		for i := range g.Residents {
			r := &g.Residents[i]
			if t := us.TaskByID(r.Task); t != nil {
				u := us.Make(t.UserAccount())
				u.count(r, 1)
				if a := t.Current(); a != nil && a.Grants[0].GPU == g.ID {
					u.tasks++
				}
			}
		}
	}
	for _, t := range us.WithoutGPU() {
		u := us.Make(t.UserAccount())
		u.tasks++
		u.rate += us.Host(t.Current().Host.Node).Resident(t.ID).Share
	}
	for _, t := range waiting {
		us.Enqueued(t)
	}
}

// AuditUsers compares the users' accounting with the ledger and the waiting tasks.
func (us *Users) AuditUsers(waiting []*model.Task) error {
	counted := New(us.Ledger)
	counted.Recount(waiting)
	for _, u := range counted.all {
		if us.Of(u.UserAccount()) == nil {
			return fmt.Errorf("nothing is kept about user %q, who has tasks", u.Name)
		}
	}
	for i, u := range us.all {
		want := User{Name: u.Name, Account: u.Account, Use: u.Use, Standing: u.Standing, Top: u.Top, First: u.First}
		if f := counted.Of(u.UserAccount()); f != nil {
			want.tasks, want.gpus, want.memory, want.rate, want.waiting = f.tasks, f.gpus, f.memory, f.rate, f.waiting
		}
		if *u != want || us.Of(u.UserAccount()) != u || i > 0 && compareUserAccounts(us.all[i-1].UserAccount(), u.UserAccount()) >= 0 {
			return fmt.Errorf("user %q is kept as %+v, the ledger has %+v", u.Name, *u, want)
		}
		if !(u.Use >= 0) {
			return fmt.Errorf("user %q has used %v GPU-seconds", u.Name, u.Use)
		}
	}
	return nil
}

// Snapshot is the users' section of a snapshot.
type Snapshot struct {
	Users    []*User       `json:"users,omitempty"`
	UsersAt  units.Instant `json:"users_at,omitempty"`
	FairTick units.Instant `json:"fair_tick,omitempty"`
}

// Save returns the users' section of a snapshot. It shares the entries.
func (us *Users) Save() Snapshot {
	return Snapshot{Users: us.all, UsersAt: us.at, FairTick: us.tick}
}

// Restore fills an empty accounting from its section.
func (us *Users) Restore(snap Snapshot) error {
	us.at, us.tick = min(snap.UsersAt, us.Now()), snap.FairTick
	for _, u := range snap.Users {
		if u == nil || us.Of(u.UserAccount()) != nil || u.Use < 0 || u.Standing < 0 || u.Top < 0 || u.First < 0 {
			return fmt.Errorf("a user is empty, there twice or has used less than nothing")
		}
		us.all, us.byParty[u.UserAccount()] = append(us.all, u), u
	}
	slices.SortFunc(us.all, func(a, b *User) int { return compareUserAccounts(a.UserAccount(), b.UserAccount()) })
	return nil
}

// Rate returns the shares that the user is charged for now, in millionths of a GPU.
func (u User) Rate() int64 { return u.rate }

// Waiting returns the number of the user's waiting tasks.
func (u User) Waiting() int { return u.waiting }
