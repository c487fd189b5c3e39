package pick

import (
	"context"
	"os/user"
	"slices"

	"carma/cmd/carma/cli"
	"carma/internal/suggest"
	"carma/runner/api"
)

// SayNobody prints the reason if no task fits a user or a group named by flags: if no
// task in any phase fits, the name may be a mistake. fits is the number of tasks that
// were found.
func (s *Selector) SayNobody(ctx context.Context, a *cli.App, client *api.Client, fits int) {
	if fits > 0 || s.User == "" && s.Group == "" {
		return
	}
	list, err := client.Tasks(ctx, api.ListOptions{All: true})
	if err != nil {
		return // the list itself was requested, and it exists
	}
	var users, groups []string
	for i := range list {
		users, groups = append(users, list[i].User), append(groups, list[i].Group)
	}
	if s.User != "" && !slices.Contains(users, s.User) {
		if _, err := user.Lookup(s.User); err != nil {
			a.Say("there is no user %s on this machine, and it has no task%s", s.User, likely(s.User, users))
		} else {
			a.Say("there is no task of %s", s.User)
		}
	}
	if s.Group != "" && !slices.Contains(groups, s.Group) {
		a.Say("there is no group %s%s", s.Group, likely(s.Group, groups))
	}
}

// likely returns the name that word may be a misspelling of.
func likely(word string, names []string) string {
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(n string) bool { return n == "" })
	if near := suggest.Near(word, names); len(near) > 0 {
		return "; nearest: " + near[0]
	}
	return ""
}
