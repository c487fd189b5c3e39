package fairshare

import (
	"slices"

	"carma/internal/units"
	"carma/mapper/model"
)

// Account is the present use by one user, or by the users of one account, for people:
// quotas and fair share count it.
type Account struct {
	Name string
	// Group: it is an account, not a user.
	Group   bool
	Tasks   int         // placed
	Waiting int         // in the queues
	GPUs    int         // held, counted for each task
	Memory  units.Bytes // sum of the grants
	// Use is GPU-seconds, decayed. Weight is its right in the fair orders, or 0 if it
	// takes no turn of its own. Ahead is the number of users with waiting tasks that go
	// first in the fair orders; it is 0 in other orders, and for an account.
	Use    float64
	Weight float64
	Ahead  int
	// Share is its part of the GPUs, 0 to 1, by right among users with tasks now, or 0 if
	// it has none.
	Share float64
	// Quota has its limits; 0 is none.
	Quota model.Quota
}

// Account returns the use by a user, which is zero for an unknown user.
func (us *Users) Account(name string) Account {
	a := us.SumOf(name).account(false)
	a.Weight, a.Quota = us.Options().Weight(name), us.Options().QuotaOf(name)
	a.Share = us.rights(func(u *User) bool { return u.Name == name })
	if !us.Options().Fair() {
		return a
	}
	var own *User
	for _, u := range us.named(name) {
		if own == nil || CompareUsers(u, own) < 0 {
			own = u
		}
	}
	if own == nil {
		return a
	}
	for _, other := range us.all {
		if other.Name != name && other.waiting > 0 && CompareUsers(other, own) < 0 {
			a.Ahead++
		}
	}
	return a
}

// GroupAccount returns the use by the users of an account on it.
func (us *Users) GroupAccount(account string) Account {
	a := us.SumOfAccount(account).account(true)
	a.Weight, a.Quota = us.Options().AccountWeight(account), us.Options().AccountQuota(account)
	a.Share = us.rights(func(u *User) bool { return u.Account == account })
	return a
}

// rights returns the part of the GPUs, by right, of the selected users, among all users
// with tasks. An account that takes turns as one shares its part among its users.
func (us *Users) rights(of func(*User) bool) float64 {
	tops, within := map[string]float64{}, map[string]float64{} // by account, or by user
	top := func(u *User) (string, float64) {
		if w := us.Options().AccountWeight(u.Account); w > 0 {
			return "@" + u.Account, w
		}
		return u.Name, us.Options().Weight(u.Name)
	}
	all := 0.0
	for _, u := range us.all {
		if u.tasks+u.waiting == 0 {
			continue
		}
		name, w := top(u)
		if tops[name] == 0 {
			tops[name] = w
			all += w
		}
		within[name] += us.Options().Weight(u.Name)
	}
	sum := 0.0
	for _, u := range us.all {
		if name, w := top(u); u.tasks+u.waiting > 0 && of(u) {
			sum += w / all * us.Options().Weight(u.Name) / within[name]
		}
	}
	return sum
}

// Accounts lists all known users, then all known accounts, each by name. Users and
// accounts with quotas or weights are known too.
func (us *Users) Accounts() []Account {
	var users, groups []string
	for _, u := range us.all {
		users, groups = append(users, u.Name), append(groups, u.Account)
	}
	for _, q := range us.Options().Quotas {
		if q.Account {
			groups = append(groups, q.Name)
		} else {
			users = append(users, q.Name)
		}
	}
	for _, w := range us.Options().FairWeights {
		users = append(users, w.User)
	}
	for _, w := range us.Options().FairAccounts {
		if w.User != model.EveryAccount {
			groups = append(groups, w.User)
		}
	}
	var all []Account
	for _, name := range distinct(users) {
		all = append(all, us.Account(name))
	}
	for _, name := range distinct(groups) {
		if name != "" {
			all = append(all, us.GroupAccount(name))
		}
	}
	return all
}

func distinct(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
