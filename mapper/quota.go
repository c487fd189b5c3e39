package mapper

import (
	"cmp"
	"fmt"
	"slices"

	"carma/internal/units"
)

// RuleQuota and RuleFairShare do not concern a GPU: the user has reached a quota, or
// other users go first.
const (
	RuleQuota     Rule = "quota"
	RuleFairShare Rule = "fair-share"
)

// Quota limits the placed tasks of a user, or of all users of an account. A user's limits
// replace the options QuotaTasks, QuotaGPUs and QuotaMemory; an account's limits apply in
// addition to its users' limits. 0 sets no limit; [NoQuota] removes one.
type Quota struct {
	Name    string      `json:"name"`
	Account bool        `json:"account,omitempty"`
	Tasks   int         `json:"tasks,omitempty"`
	GPUs    int         `json:"gpus,omitempty"`
	Memory  units.Bytes `json:"memory,omitempty"`
}

// NoQuota removes a limit for one user that the others have.
const NoQuota = -1

func compareQuotas(a, b Quota) int {
	return cmp.Or(compareBool(a.Account, b.Account), cmp.Compare(a.Name, b.Name))
}

// validQuotas checks that the quotas are sorted, users first, each user and account once.
func validQuotas(all []Quota) error {
	for i, q := range all {
		who := q.Name
		if q.Account {
			who = "@" + who
		}
		switch {
		case q.Name == "":
			return fmt.Errorf("quotas names nobody; write for example ada:gpus=4")
		case q.Tasks < NoQuota || q.GPUs < NoQuota || q.Memory < NoQuota:
			return fmt.Errorf("quotas gives %s a negative limit; write none for no limit", who)
		case i > 0 && compareQuotas(all[i-1], q) == 0:
			return fmt.Errorf("quotas names %s twice", who)
		case i > 0 && compareQuotas(all[i-1], q) > 0:
			return fmt.Errorf("quotas is not sorted")
		}
	}
	return nil
}

// quotaOf returns the quota of a user; 0 is no limit.
func (o *Options) quotaOf(name string) Quota {
	q := Quota{Name: name, Tasks: o.QuotaTasks, GPUs: o.QuotaGPUs, Memory: o.QuotaMemory}
	if own, ok := o.named(Quota{Name: name}); ok {
		q.Tasks, q.GPUs, q.Memory = cmp.Or(own.Tasks, q.Tasks), cmp.Or(own.GPUs, q.GPUs), cmp.Or(own.Memory, q.Memory)
	}
	return q.bounds()
}

// accountQuota returns the quota of an account; 0 is no limit.
func (o *Options) accountQuota(account string) Quota {
	q, _ := o.named(Quota{Name: account, Account: true})
	q.Name, q.Account = account, true
	return q.bounds()
}

func (o *Options) named(q Quota) (Quota, bool) {
	i, ok := slices.BinarySearchFunc(o.Quotas, q, compareQuotas)
	if !ok {
		return Quota{}, false
	}
	return o.Quotas[i], true
}

// bounds returns a quota with 0 for no limit.
func (q Quota) bounds() Quota {
	q.Tasks, q.GPUs, q.Memory = max(0, q.Tasks), max(0, q.GPUs), max(0, q.Memory)
	return q
}

func (q *Quota) any() bool { return q.Tasks > 0 || q.GPUs > 0 || q.Memory > 0 }

// quotas reports whether any quota is set.
func (o *Options) quotas() bool {
	return o.QuotaTasks > 0 || o.QuotaGPUs > 0 || o.QuotaMemory > 0 || len(o.Quotas) > 0
}

// overQuota says which quota keeps a waiting task from starting, or returns the zero
// Reason. Quotas apply to everybody, admins included: whoever may set them can also lift
// them.
func (us *users) overQuota(t *Task) Reason {
	if !us.opt.quotas() {
		return Reason{}
	}
	if q := us.opt.quotaOf(t.User); q.any() {
		if r := us.over(t, q, us.has(t.User)); r.Code != "" {
			return r
		}
	}
	if q := us.opt.accountQuota(t.Account); t.Account != "" && q.any() {
		r := us.over(t, q, us.hasAccount(t.Account))
		if r.Code != "" {
			r.Name = "@" + q.Name
		}
		return r
	}
	return Reason{}
}

// over compares the tasks of u plus another task with a quota.
func (us *users) over(t *Task, q Quota, u user) Reason {
	switch {
	case q.Tasks > 0 && u.tasks >= q.Tasks:
		return Reason{Code: ReasonQuotaTasks, Name: q.Name, Count: u.tasks, Limit: q.Tasks}
	case q.GPUs > 0 && u.gpus+t.GPUs > q.GPUs:
		return Reason{Code: ReasonQuotaGPUs, Name: q.Name, Count: u.gpus, More: t.GPUs, Limit: q.GPUs}
	case q.Memory > 0 && us.total(t.GPUs, t.NextGrant, us.alone(t)) > q.Memory-u.memory:
		return Reason{Code: ReasonQuotaMemory, Name: q.Name, Have: u.memory, Need: us.total(t.GPUs, t.NextGrant, us.alone(t)), Of: q.Memory}
	}
	return Reason{}
}

// memoryLeft returns the memory that a user may still be granted on an account. bounded
// is false if there is no limit.
func (us *users) memoryLeft(name, account string) (left units.Bytes, bounded bool) {
	if !us.opt.quotas() {
		return 0, false
	}
	if q := us.opt.quotaOf(name); q.Memory > 0 {
		left, bounded = q.Memory-us.has(name).memory, true
	}
	if q := us.opt.accountQuota(account); account != "" && q.Memory > 0 {
		of := q.Memory - us.hasAccount(account).memory
		if !bounded || of < left {
			left, bounded = of, true
		}
	}
	return left, bounded
}

// total returns what a task counts for the memory quota: the sum of its grants. For
// exclusive GPUs that is all of their memory, and of unequal GPUs the largest, since the
// task may get those.
func (l *ledger) total(gpus int, need units.Bytes, alone bool) units.Bytes {
	if alone {
		for _, g := range l.gpus {
			need = max(need, l.bookable(g))
		}
	}
	return need.Clamp() * units.Bytes(min(gpus, 1<<10))
}

// checkQuota rejects a request that could not start even if its user and its account had
// no other task.
func (us *users) checkQuota(r Request, gpus int, need units.Bytes, alone bool) *ImpossibleError {
	if !us.opt.quotas() {
		return nil
	}
	all := []Quota{us.opt.quotaOf(r.User)}
	if r.Account != "" {
		all = append(all, us.opt.accountQuota(r.Account))
	}
	total := us.total(gpus, need, alone)
	for _, q := range all {
		switch {
		case q.GPUs > 0 && gpus > q.GPUs:
			return &ImpossibleError{"gpus", Reason{Code: ReasonNeverGPUs, Count: gpus, Limit: q.GPUs}}
		case q.Memory > 0 && total > q.Memory && alone:
			return &ImpossibleError{"exclusive", Reason{Code: ReasonNeverAlone, Count: gpus, Need: total, Of: q.Memory}}
		case q.Memory > 0 && total > q.Memory:
			return &ImpossibleError{"mem", Reason{Code: ReasonNeverMemory, Need: total, Of: q.Memory}}
		}
	}
	return nil
}
