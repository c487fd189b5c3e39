package model

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"carma/internal/units"
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
	return cmp.Or(CompareBools(a.Account, b.Account), cmp.Compare(a.Name, b.Name))
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

// bounds returns a quota with 0 for no limit.
func (q Quota) bounds() Quota {
	q.Tasks, q.GPUs, q.Memory = max(0, q.Tasks), max(0, q.GPUs), max(0, q.Memory)
	return q
}

// Any reports whether the quota limits anything.
func (q *Quota) Any() bool { return q.Tasks > 0 || q.GPUs > 0 || q.Memory > 0 }

// Weight is the right of a user, or an account, to the server, in proportion to others.
type Weight struct {
	User   string  `json:"user"`
	Weight float64 `json:"weight"`
}

// EveryAccount stands in FairAccounts for all accounts that are not named there.
const EveryAccount = "*"

// defaultHalfLife is the time after which a GPU-second counts half.
const defaultHalfLife = 24 * time.Hour

func find(all []Weight, name string) (float64, bool) {
	i, ok := slices.BinarySearchFunc(all, name, func(w Weight, name string) int { return cmp.Compare(w.User, name) })
	if !ok {
		return 0, false
	}
	return all[i].Weight, true
}

// validWeights checks that the weights are sorted by name, each name once.
func validWeights(key, who string, all []Weight) error {
	for i, w := range all {
		switch {
		case w.User == "":
			return fmt.Errorf("%s names no %s; write for example ada=2", key, who)
		case !(w.Weight >= 0.001 && w.Weight <= 1000):
			return fmt.Errorf("%s gives %s %v, which is not between 0.001 and 1000", key, w.User, w.Weight)
		case i > 0 && all[i-1].User == w.User:
			return fmt.Errorf("%s names %s twice", key, w.User)
		case i > 0 && all[i-1].User > w.User:
			return fmt.Errorf("%s is not sorted by %s", key, who)
		}
	}
	return nil
}
