package runner

import (
	"context"

	"carma/mapper"
	"carma/runner/api"
)

// Quotas lists what users and groups have and may have: users first.
func (r *Runner) Quotas(ctx context.Context) (all []api.Account, err error) {
	all = []api.Account{}
	err = r.look(ctx, func(s *mapper.State) {
		for _, a := range s.Accounts() {
			all = append(all, *accountView(s, a))
		}
	})
	return all, err
}

// accountOf is what a user has and may have.
func accountOf(s *mapper.State, user string) *api.Account { return accountView(s, s.Account(user)) }

func accountView(s *mapper.State, a mapper.Account) *api.Account {
	v := api.Account{
		Tasks: a.Tasks, GPUs: a.GPUs, Memory: int64(a.Memory), Waiting: a.Waiting,
		QuotaTasks: a.Quota.Tasks, QuotaGPUs: a.Quota.GPUs, QuotaMemory: int64(a.Quota.Memory),
		Fair: s.TakesTurns(), Used: a.Use, Ahead: a.Ahead,
	}
	if v.User = a.Name; a.Group {
		v.User, v.Group = "", a.Name
	}
	if v.Fair {
		v.Weight, v.Share = a.Weight, a.Share
	}
	return &v
}
