package httplimit

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"carma/runner/request"
	"carma/runner/web"

	"golang.org/x/sys/unix"
)

// Limits of the connections to the daemon.
const (
	// MaxConnections limits all connections to the API's socket. rootsConnections of them
	// are only for root and the daemon's own user. Each listener has its own count and its
	// own share of the files that the daemon may have open: half is for the socket, an
	// eighth each for the page's socket and port, the rest for the daemon's own work.
	MaxConnections   = 8192
	rootsConnections = 128
	// IdleLimit ends a connection without requests, so that its place is free
	// again.
	IdleLimit = 2 * time.Minute
	// refusedAtOnce is the number of refused connections that are answered at a time; further ones
	// are closed without an answer.
	refusedAtOnce = 64
)

// connLimiter is a listener that limits the connections, of each user and in
// all, and keeps some places for root. Connections above a limit are answered
// with the reason and closed.
type connLimiter struct {
	net.Listener
	each         func() int // limit of one user, or 0 if none
	all, forRoot int
	free         func(uid int) bool // users without limits

	mu       sync.Mutex
	open     map[int]int // by uid
	total    int
	refusing chan struct{} // a token for each connection that is being refused
}

// PlacesFor returns the number of connections that a listener may have: most, or 1/part of
// the files that may be open if that is less.
func PlacesFor(most, part int) int {
	var files unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) == nil && files.Cur/uint64(part) < uint64(most) {
		return int(files.Cur) / part
	}
	return most
}

// LimitConnections returns a listener that accepts at most all connections, and at most
// each() of one user, or any number if each() is 0. free reports whether a user has no
// limit of its own. Some places are for root and the daemon's user.
func LimitConnections(l net.Listener, all int, each func() int, free func(uid int) bool) net.Listener {
	return newConnLimiter(l, all, each, free)
}

func newConnLimiter(l net.Listener, all int, each func() int, free func(uid int) bool) *connLimiter {
	return &connLimiter{
		Listener: l, each: each, all: all, forRoot: min(rootsConnections, all/2), free: free,
		open: map[int]int{}, refusing: make(chan struct{}, refusedAtOnce),
	}
}

// Accept returns the next connection that is let in.
func (d *connLimiter) Accept() (net.Conn, error) {
	for {
		c, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		peer, ok := peerOf(c)
		if !ok {
			return c, nil // its requests are refused
		}
		if why := d.enter(int(peer.Uid)); why != "" {
			d.refuse(c, why)
			continue
		}
		return &limitedConn{Conn: c, peer: peer, leave: sync.OnceFunc(func() { d.exit(int(peer.Uid)) })}, nil
	}
}

func (d *connLimiter) enter(uid int) (why string) {
	each := d.each()
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.free(uid) && d.total < d.all:
	case d.total >= d.all-d.forRoot:
		return "the daemon has too many open connections; try again in a moment"
	case each > 0 && d.open[uid] >= each:
		return fmt.Sprintf("you have %d open connections to the daemon, and one user may have %d (user-connections); end some of your carma commands", d.open[uid], each)
	}
	d.open[uid]++
	d.total++
	return ""
}

func (d *connLimiter) exit(uid int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.total--
	if d.open[uid]--; d.open[uid] == 0 {
		delete(d.open, uid)
	}
}

// refuse closes a refused connection. It sends the reason before, unless too
// many refused connections are being answered.
func (d *connLimiter) refuse(c net.Conn, why string) {
	select {
	case d.refusing <- struct{}{}:
	default:
		_ = c.Close()
		return
	}
	go func() {
		defer func() { <-d.refusing; _ = c.Close() }()
		_ = c.SetDeadline(time.Now().Add(time.Second))
		body := fmt.Sprintf(`{"title":"Too Many Requests","status":429,"detail":%q}`, why)
		// A request that is not read could make the system drop the answer.
		_, _ = c.Read(make([]byte, 4<<10))
		_, _ = fmt.Fprintf(c, "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/problem+json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body)
	}()
}

// limitedConn is a connection that was let in.
type limitedConn struct {
	net.Conn
	peer  *unix.Ucred
	leave func()
}

func (v *limitedConn) Close() error {
	v.leave()
	return v.Conn.Close()
}

// peerOf returns the process at the other end of a unix socket, from the kernel.
func peerOf(c net.Conn) (*unix.Ucred, bool) {
	switch c := c.(type) {
	case *limitedConn:
		return c.peer, true
	case *net.UnixConn:
		raw, err := c.SyscallConn()
		if err != nil {
			return nil, false
		}
		var cred *unix.Ucred
		if raw.Control(func(fd uintptr) {
			cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		}) != nil || err != nil {
			return nil, false
		}
		return cred, true
	}
	return nil, false
}

// WithPeer puts the peer of a connection into its context. The peer's name
// and groups are looked up at their first use: a directory server that hangs
// must delay nobody else.
func WithPeer(ctx context.Context, c net.Conn) context.Context {
	if _, tcp := c.LocalAddr().(*net.TCPAddr); tcp { // The kernel's table may be long, so it is read only when a request to the page needs the peer.
		return context.WithValue(ctx, portPeerKey{}, sync.OnceValues(func() (int, bool) { return web.PeerOf(c) }))
	}
	peer, ok := peerOf(c)
	if !ok {
		return ctx
	}
	return request.WithLazyCaller(ctx, sync.OnceValue(func() request.Caller { return request.LookupCaller(int(peer.Uid), int(peer.Gid)) }))
}

type portPeerKey struct{}

// PortPeer returns the user at the other end of a connection to the page. For the socket
// it is the caller, for the port the user in the kernel's table.
func PortPeer(ctx context.Context) (uid int, ok bool) {
	if find, ok := ctx.Value(portPeerKey{}).(func() (int, bool)); ok {
		return find()
	}
	who, ok := request.CallerFrom(ctx)
	return who.UID, ok
}
