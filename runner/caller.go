package runner

import (
	"context"
	"net"
	"os/user"
	"strconv"

	"golang.org/x/sys/unix"
)

// Caller is who is at the other end of the socket, as the kernel says.
type Caller struct {
	UID, GID int
	Name     string
	Home     string
	Groups   []string // names
	GIDs     []int    // the same, by number
}

type callerKey struct{}

// withCaller puts the peer of a unix socket connection into its context.
func withCaller(ctx context.Context, c net.Conn) context.Context {
	uc, ok := c.(*net.UnixConn)
	if !ok {
		return ctx
	}
	raw, err := uc.SyscallConn()
	if err != nil {
		return ctx
	}
	var cred *unix.Ucred
	if raw.Control(func(fd uintptr) {
		cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}) != nil || err != nil {
		return ctx
	}
	return context.WithValue(ctx, callerKey{}, callerOf(int(cred.Uid), int(cred.Gid)))
}

func callerOf(uid, gid int) Caller {
	c := Caller{UID: uid, GID: gid, Name: strconv.Itoa(uid)}
	u, err := user.LookupId(c.Name)
	if err != nil {
		return c
	}
	c.Name, c.Home = u.Username, u.HomeDir
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

// callerFrom returns the caller of a request; false if it is not known.
func callerFrom(ctx context.Context) (Caller, bool) {
	c, ok := ctx.Value(callerKey{}).(Caller)
	return c, ok
}
