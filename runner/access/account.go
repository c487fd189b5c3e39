package access

import (
	"slices"
	"strings"

	"carma/runner/request"
	"carma/runner/rights"
)

// AuthorizeHighPriority refuses priority high to a caller who may not use it.
func (a *Authorizer) AuthorizeHighPriority(who request.Caller) error {
	may := a.settings().HighPriority
	if may == "" || may == "all" || a.MayServer(rights.HighPriority, who) {
		return nil
	}
	names := strings.FieldsFunc(may, func(c rune) bool { return c == ',' || c == ' ' })
	if slices.ContainsFunc(names, func(name string) bool { return name == who.Name || slices.Contains(who.Groups, name) }) {
		return nil
	}
	admins := "root"
	if group := a.settings().AdminGroup; group != "" {
		admins = "root and group " + group
	}
	if may == "admins" {
		return request.Errorf(403, "--priority high is for admins here (%s); write --priority normal", admins)
	}
	return request.Errorf(403, "--priority high is for %s and admins here (%s); write --priority normal", strings.Join(names, ", "), admins)
}

// Account returns the group to which a task is charged. It is the requested group, which
// must have the submitter as a member, or else the submitter's primary group.
func (a *Authorizer) Account(who request.Caller, asked string) (string, error) {
	switch {
	case asked == "":
		return who.Group, nil // a task of a cluster's user is charged to its namespace
	case slices.Contains(who.Groups, asked) || asked == who.Group || a.MayServer(rights.AnyAccount, who):
		return asked, nil
	case len(who.Groups) == 0:
		return "", request.Errorf(403, "--account %s: you are in no group that is known here", asked)
	}
	return "", request.Errorf(403, "--account %s: you are not in that group; you are in %s", asked, strings.Join(who.Groups, ", "))
}
