package server

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"

	"carma/runner/api"
	"carma/runner/httplimit"
	"carma/runner/request"
	"carma/runner/web"

	"golang.org/x/net/netutil"
)

const (
	// PageConnections limits the connections to the page's port, whose users are not
	// known at first.
	PageConnections = 256
	// PageSocketConnections limits the connections to the page's socket. The API's limit for
	// each user applies too.
	PageSocketConnections = 1024
)

// Page contains the addresses of the web page.
type Page struct {
	Listeners []net.Listener // on unix sockets and loopback addresses; the daemon closes them
	// Address and Socket are the addresses of the listeners, or empty. Note is the reason why a
	// configured address is missing.
	Address, Socket, Note string
}

// SetPage sets where Run serves the page. Call it before Run.
func (s *Server) SetPage(at Page) { s.page = at }

// WebLogin returns a ticket for the page.
func (s *Server) WebLogin(who request.Caller) (api.WebLogin, error) {
	at := s.page
	if len(at.Listeners) == 0 {
		note := at.Note
		if note == "" {
			note = "its configuration says web: off"
		}
		return api.WebLogin{}, request.Errorf(409, "this daemon serves no page: %s", note)
	}
	ticket, ends := s.logins.Ticket(web.User{UID: who.UID, GID: who.GID, Name: who.Name})
	return api.WebLogin{Ticket: ticket, Ends: ends, Address: at.Address, Socket: at.Socket, Note: at.Note}, nil
}

// pageHandler returns the page.
func (s *Server) pageHandler(front http.Handler) http.Handler {
	return web.Handler(web.Options{
		Logins: s.logins, API: front, As: s.asUser, Peer: httplimit.PortPeer,
		Admin:   func(u web.User) bool { return s.c.Administers(s.c.Caller(u.UID, u.GID)) },
		Entered: func(u web.User) { s.c.Log.Info().Str("user", u.Name).Int("uid", u.UID).Msg("signed in to the page") },
	})
}

// servePage serves the page on l until ctx ends.
func (s *Server) servePage(ctx context.Context, l net.Listener, h http.Handler) error {
	if _, unix := l.Addr().(*net.UnixAddr); unix {
		l = s.limitUsers(l, PageSocketConnections, 8)
	} else {
		l = netutil.LimitListener(l, httplimit.PlacesFor(PageConnections, 8))
	}
	return s.serve(ctx, l, h)
}

// asUser makes a user the caller of a request.
func (s *Server) asUser(ctx context.Context, u web.User) context.Context {
	return request.WithLazyCaller(ctx, sync.OnceValue(func() request.Caller { return s.c.Caller(u.UID, u.GID) }))
}

// maxScrapers is the largest number of simultaneous connections to the port for Prometheus.
const maxScrapers = 64

// ServeMetrics answers with a page of metrics on l until ctx ends.
func ServeMetrics(ctx context.Context, l net.Listener, page http.Handler) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", page)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("carma's figures for Prometheus are at /metrics\n"))
	})
	var handler http.Handler = mux
	if at, ok := l.Addr().(*net.TCPAddr); ok && at.IP.IsLoopback() {
		handler = web.OwnHost(handler)
	}
	l = netutil.LimitListener(l, maxScrapers)
	srv := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: httplimit.IdleLimit, MaxHeaderBytes: 16 << 10,
	}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	if err := srv.Serve(l); err != http.ErrServerClosed {
		return err
	}
	return nil
}
