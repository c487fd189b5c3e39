package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"carma/runner/certs"
	"carma/runner/httplimit"
	"carma/runner/request"
	"carma/runner/web"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"
)

// ErrSocketInUse is the error if another daemon answers at the socket.
var ErrSocketInUse = errors.New("another daemon answers")

// Listen opens the unix socket. It replaces a socket at which nobody answers. If a daemon
// answers there, the error wraps [ErrSocketInUse]. Everybody on the machine may connect,
// and the kernel identifies them.
func Listen(socket string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		return nil, err
	}
	if c, err := net.DialTimeout("unix", socket, time.Second); err == nil {
		c.Close()
		return nil, fmt.Errorf("%w at %s", ErrSocketInUse, socket)
	}
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	return l, os.Chmod(socket, 0o666)
}

// Config has the parts that a [Server] works with.
type Config struct {
	// API returns the handler of the API.
	API func() http.Handler
	// Guard returns the handler of a request over TLS: it identifies the caller and checks
	// the rights in the cluster before next.
	Guard func(next http.Handler) http.Handler
	// Connections returns the largest number of connections of one user, 0 for no limit.
	// Unlimited reports whether a user has no such limit.
	Connections func() int
	Unlimited   func(uid int) bool
	// Caller returns a user of the machine, and Administers reports whether the user is an
	// administrator.
	Caller      func(uid, gid int) request.Caller
	Administers func(request.Caller) bool
	// BeginStop is called when a listener stops, before its streams are ended.
	BeginStop func()
	Log       zerolog.Logger
}

// Server answers requests of the API.
type Server struct {
	c        Config
	turns    *httplimit.RequestLimiter
	logins   *web.Logins
	upgraded sync.WaitGroup // connections of terminals and commands

	// Set before Run:
	page       Page
	remoteAt   net.Listener // nil if nothing is served over TLS
	remoteCert certs.Get
}

// New returns a server.
func New(c Config) *Server {
	return &Server{c: c, turns: httplimit.NewRequestLimiter(), logins: web.NewLogins(time.Now)}
}

// Run answers the API on l, users of the cluster over TLS, and the page, until ctx ends or
// one of them fails. It returns when all of them have ended their requests.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	g, ctx := errgroup.WithContext(ctx)
	front := s.Front(ctx)
	g.Go(func() error { return s.serve(ctx, s.limitUsers(l, httplimit.MaxConnections, 2), front) })
	if s.remoteAt != nil {
		g.Go(func() error { return s.serveRemote(ctx, front) })
	}
	if len(s.page.Listeners) > 0 {
		page := s.pageHandler(front)
		for _, l := range s.page.Listeners {
			g.Go(func() error { return s.servePage(ctx, l, page) })
		}
	}
	return g.Wait()
}

// Front returns the API with its usage limits. Once ctx has ended it refuses changes.
func (s *Server) Front(ctx context.Context) http.Handler {
	return whileStopping(ctx, s.turns.Guard(s.c.API()))
}

// Remote returns the API for users of a cluster, with its usage limits.
func (s *Server) Remote(ctx context.Context) http.Handler { return s.c.Guard(s.Front(ctx)) }

// limitUsers limits all connections to l, and the connections of each user.
func (s *Server) limitUsers(l net.Listener, most, part int) net.Listener {
	return httplimit.LimitConnections(l, httplimit.PlacesFor(most, part), s.c.Connections, s.c.Unlimited)
}

// Upgraded counts a connection that a handler has taken over, until done is called. The
// server waits for it a moment when it stops.
func (s *Server) Upgraded() (done func()) {
	s.upgraded.Add(1)
	return s.upgraded.Done
}

// serve answers on l until ctx ends.
func (s *Server) serve(ctx context.Context, l net.Listener, h http.Handler) error {
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       httplimit.IdleLimit,
		MaxHeaderBytes:    64 << 10,
		BaseContext:       func(net.Listener) context.Context { return base },
		ConnContext:       httplimit.WithPeer,
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		<-ctx.Done()
		s.c.BeginStop()
		cancel() // ends the streams
		limit, stop := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer stop()
		if srv.Shutdown(limit) != nil {
			srv.Close()
		}
		ended := make(chan struct{})
		go func() { defer close(ended); s.upgraded.Wait() }()
		select { // until then, commands are asked to end
		case <-ended:
		case <-limit.Done():
		}
	}()
	err := srv.Serve(l)
	if errors.Is(err, http.ErrServerClosed) {
		<-done
		return nil
	}
	cancel()
	return err
}
