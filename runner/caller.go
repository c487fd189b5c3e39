package runner

import (
	"context"
	"os/user"
	"strconv"
	"strings"

	"carma/containers"
	"carma/runner/api"
	"carma/runner/rights"
)

// Caller is the user who makes a request: the peer of the socket according to the kernel,
// or the user of the cluster whose token was sent.
type Caller struct {
	UID, GID int
	Name     string
	Home     string
	Group    string   // name of the primary group
	Groups   []string // names
	GIDs     []int    // the same, by number
	// Subject is set for a user of a cluster. UID is then a number that carma assigns
	// (see [subjectUID]), and Groups are the cluster's.
	Subject   *containers.Subject
	namespace string // used where the caller names no other
}

type callerKey struct{}

func callerOf(uid, gid int) Caller {
	c := Caller{UID: uid, GID: gid, Name: strconv.Itoa(uid)}
	u, err := user.LookupId(c.Name)
	if err != nil {
		return c
	}
	c.Name, c.Home = u.Username, u.HomeDir
	c.Group = u.Gid
	if g, err := user.LookupGroupId(u.Gid); err == nil {
		c.Group = g.Name
	}
	ids, err := u.GroupIds()
	if err != nil {
		return c
	}
	for _, id := range ids {
		if n, err := strconv.Atoi(id); err == nil {
			c.GIDs = append(c.GIDs, n)
		}
		if g, err := user.LookupGroupId(id); err == nil {
			c.Groups = append(c.Groups, g.Name)
		}
	}
	return c
}

// callerFrom returns the caller of a request, or false if the caller is unknown.
func callerFrom(ctx context.Context) (Caller, bool) {
	switch c := ctx.Value(callerKey{}).(type) {
	case func() Caller:
		return c(), true
	case Caller:
		return c, true
	}
	return Caller{}, false
}

// is reports whether a container's user, by name or number, alone or with a group, is the
// caller with the primary group.
func (c Caller) is(user string) bool {
	name, group, grouped := strings.Cut(user, ":")
	return (name == strconv.Itoa(c.UID) || name == c.Name) && (!grouped || group == strconv.Itoa(c.GID) || group == c.Group)
}

// checkUser refuses the user of a container that a caller may not choose.
func checkUser(who Caller, s api.Submit) error {
	if s.User == "" || who.is(s.User) || (rights.Policy{}).MayServer(rights.ChooseUser, rights.Caller{UID: who.UID}) {
		return nil
	}
	return refusef(403, "--user %s: a task runs as its submitter, and only root may choose; leave it out", s.User)
}
