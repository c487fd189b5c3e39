package request

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"os/user"
	"strconv"
	"strings"

	"carma/containers"
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
	// (see [SubjectUID]), and Groups are the cluster's.
	Subject   *containers.Subject
	Namespace string // used where the caller names no other
}

type callerKey struct{}

// WithCaller returns a context for a request by a caller.
func WithCaller(ctx context.Context, who Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, who)
}

// WithLazyCaller returns a context for a request by a caller who is looked up when somebody
// asks. The function may be called several times.
func WithLazyCaller(ctx context.Context, who func() Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, who)
}

// LookupCaller returns a user of the system with the groups. A user without an entry has
// the number as name.
func LookupCaller(uid, gid int) Caller {
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

// CallerFrom returns the caller of a request, or false if the caller is unknown.
func CallerFrom(ctx context.Context) (Caller, bool) {
	switch c := ctx.Value(callerKey{}).(type) {
	case func() Caller:
		return c(), true
	case Caller:
		return c, true
	}
	return Caller{}, false
}

// KnownCaller returns the caller of a request, or a refusal if the caller is unknown.
func KnownCaller(ctx context.Context) (Caller, error) {
	who, ok := CallerFrom(ctx)
	if !ok {
		return who, Errorf(403, "the caller is not known: connect through the unix socket")
	}
	return who, nil
}

// Is reports whether a container's user, by name or number, alone or with a group, is the
// caller with the primary group.
func (c Caller) Is(user string) bool {
	name, group, grouped := strings.Cut(user, ":")
	return (name == strconv.Itoa(c.UID) || name == c.Name) && (!grouped || group == strconv.Itoa(c.GID) || group == c.Group)
}

// SubjectUID returns the number that stands for a user of a cluster in records, limits
// and labels. It is computed from the name, so it is the same on every machine.
func SubjectUID(name string) int {
	sum := sha256.Sum256([]byte("kubernetes:" + name))
	return rights.FirstClusterUser + int(binary.BigEndian.Uint64(sum[:])>>2)
}

// SubjectCaller returns the caller for a user of a cluster. home is the namespace that
// the request names as the user's. For a service account it is the account's own
// namespace.
func SubjectCaller(s containers.Subject, home string) Caller {
	if home == "" {
		if rest, ok := strings.CutPrefix(s.Name, "system:serviceaccount:"); ok {
			home, _, _ = strings.Cut(rest, ":")
		}
	}
	return Caller{UID: SubjectUID(s.Name), GID: rights.FirstClusterUser, Name: s.Name, Groups: s.Groups, Subject: &s, Home: "", Namespace: home}
}
