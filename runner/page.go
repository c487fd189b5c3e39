package runner

import (
	"context"
	"net"
	"net/http"
	"sync"

	"carma/runner/api"
	"carma/runner/httplimit"
	"carma/runner/request"
	"carma/runner/web"

	"golang.org/x/net/netutil"
)

const (
	// pageConnections limits the connections to the page's port, whose users are not
	// known at first.
	pageConnections = 256
	// pageSocketConnections limits the connections to the page's socket. The API's limit for
	// each user applies too.
	pageSocketConnections = 1024
)

// Page contains the addresses of the web page.
type Page struct {
	Listeners []net.Listener // on unix sockets and loopback addresses; the daemon closes them
	// Address and Socket are the addresses of the listeners, or empty. Note is the reason why a
	// configured address is missing.
	Address, Socket, Note string
}

// ServePage sets where RunAndServe serves the page. Call it before RunAndServe.
func (r *Runner) ServePage(at Page) { r.pageAt = at }

// WebLogin returns a ticket for the page.
func (r *Runner) WebLogin(who request.Caller) (api.WebLogin, error) {
	at := r.pageAt
	if len(at.Listeners) == 0 {
		note := at.Note
		if note == "" {
			note = "its configuration says web: off"
		}
		return api.WebLogin{}, request.Errorf(409, "this daemon serves no page: %s", note)
	}
	ticket, ends := r.logins.Ticket(web.User{UID: who.UID, GID: who.GID, Name: who.Name})
	return api.WebLogin{Ticket: ticket, Ends: ends, Address: at.Address, Socket: at.Socket, Note: at.Note}, nil
}

// pageHandler returns the page.
func (r *Runner) pageHandler(ctx context.Context) http.Handler {
	return web.Handler(web.Options{
		Logins: r.logins, API: r.front(ctx), As: r.asUser, Peer: httplimit.PortPeer,
		Admin:   func(u web.User) bool { return r.authz.Administers(r.users(u.UID, u.GID)) },
		Entered: func(u web.User) { r.Log.Info().Str("user", u.Name).Int("uid", u.UID).Msg("signed in to the page") },
	})
}

// servePage serves the page on l until ctx ends.
func (r *Runner) servePage(ctx context.Context, l net.Listener, h http.Handler) error {
	if _, unix := l.Addr().(*net.UnixAddr); unix {
		l = httplimit.LimitConnections(l, httplimit.PlacesFor(pageSocketConnections, 8), func() int { return r.live().PerUser.Connections }, mayMountAll)
	} else {
		l = netutil.LimitListener(l, httplimit.PlacesFor(pageConnections, 8))
	}
	return r.serve(ctx, l, h)
}

// asUser makes a user the caller of a request.
func (r *Runner) asUser(ctx context.Context, u web.User) context.Context {
	return request.WithLazyCaller(ctx, sync.OnceValue(func() request.Caller { return r.users(u.UID, u.GID) }))
}
