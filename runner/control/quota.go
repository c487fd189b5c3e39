package control

import (
	"context"
	"os/user"
	"slices"
	"strings"

	"carma/mapper"
	"carma/mapper/fairshare"
	"carma/runner/api"
	"carma/runner/request"
	"carma/runner/rights"
)

// Quotas lists the usage and quotas of users, the caller among them, and then of groups.
// Users and @groups of this machine that are given in names are listed even if carma
// knows none of their tasks.
func (c *Controller) Quotas(ctx context.Context, who request.Caller, names []string) (all []api.Account, err error) {
	all = []api.Account{}
	seesAll := c.authz.MayServer(rights.SeeUse, who)
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !there(name) })
	err = c.loop.Look(ctx, func(s *mapper.State) {
		var users, groups []fairshare.Account
		for _, a := range s.Accounts() {
			users, groups = enlist(users, groups, a)
		}
		for _, name := range append(names, who.Name) {
			if group, is := strings.CutPrefix(name, "@"); is {
				users, groups = enlist(users, groups, s.GroupAccount(group))
			} else if name != "" {
				users, groups = enlist(users, groups, s.Account(name))
			}
		}
		for _, a := range append(users, groups...) {
			if !seesAll && (a.Group || a.Name != who.Name) {
				continue // a user of a cluster sees nothing of others
			}
			all = append(all, *accountView(s, a))
		}
	})
	return all, err
}

// enlist adds an account to the users or to the groups, once.
func enlist(users, groups []fairshare.Account, a fairshare.Account) ([]fairshare.Account, []fairshare.Account) {
	list := &users
	if a.Group {
		list = &groups
	}
	if !slices.ContainsFunc(*list, func(b fairshare.Account) bool { return a.Name == b.Name }) {
		*list = append(*list, a)
	}
	return users, groups
}

// there reports whether this machine has a user or a @group with the given name.
func there(name string) bool {
	group, is := strings.CutPrefix(name, "@")
	var err error
	if is {
		_, err = user.LookupGroup(group)
	} else {
		_, err = user.Lookup(name)
	}
	return err == nil
}

// AccountOf returns a user's usage and quota.
func AccountOf(s *mapper.State, user string) *api.Account { return accountView(s, s.Account(user)) }

func accountView(s *mapper.State, a fairshare.Account) *api.Account {
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
