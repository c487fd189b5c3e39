package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// Options are the settings of a page.
type Options struct {
	Logins *Logins
	// API answers the page's requests. As puts the user into a request's context, where the
	// API finds its caller.
	API http.Handler
	As  func(ctx context.Context, u User) context.Context
	// Peer returns the user at the other end of a request's connection, or false if unknown.
	Peer func(ctx context.Context) (uid int, ok bool)
	// Admin reports whether a user may change the tasks of others.
	Admin func(User) bool
	// Entered is called with each user who signs in, or is nil.
	Entered func(User)
}

type page struct {
	Options
	cookie string // name of the cookie, unique because browsers send cookies to every port of a host
	files  http.Handler
}

// Handler returns the handler of the page.
func Handler(o Options) http.Handler {
	p := &page{Options: o, cookie: "carma-" + secret()[:8], files: files()}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /login", p.login)
	mux.HandleFunc("GET /session", p.signed(p.about))
	mux.HandleFunc("POST /logout", p.signed(p.logout))
	mux.HandleFunc("/v1/", p.signed(p.ask))
	mux.Handle("/", p.files)
	return p.walls(mux)
}

// walls refuses requests that no browser with the page open would send.
func (p *page) walls(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		harden(w.Header())
		switch {
		case !ownHost(req.Host):
			refuse(w, http.StatusMisdirectedRequest, "the page is at 127.0.0.1 only; carma web prints its address")
		case !ownOrigin(req):
			refuse(w, http.StatusForbidden, "another page asks; only carma's own page may")
		default:
			next.ServeHTTP(w, req)
		}
	})
}

type sessionKey struct{}

// signed refuses requests without a session.
func (p *page) signed(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		cookie, err := req.Cookie(p.cookie)
		var s *session
		if err == nil {
			s = p.Logins.session(cookie.Value, req.Header.Get("Carma-Key"))
		}
		if s != nil { // done last, because the kernel searches all connections
			if peer, known := p.Peer(req.Context()); !known || !mayBe(peer, s.user) {
				s = nil
			}
		}
		if s == nil {
			refuse(w, http.StatusUnauthorized, "not signed in; run carma web on the server")
			return
		}
		ctx, cancel := context.WithDeadline(req.Context(), s.ends)
		defer cancel()
		go func() { // a stream ends with its session
			select {
			case <-s.over:
				cancel()
			case <-ctx.Done():
			}
		}()
		w.Header().Set("Cache-Control", "no-store")
		next(w, req.WithContext(context.WithValue(ctx, sessionKey{}, s)))
	}
}

func sessionOf(req *http.Request) *session { return req.Context().Value(sessionKey{}).(*session) }

// signedIn is the page's data about its session.
type signedIn struct {
	User string `json:"user"`
	UID  int    `json:"uid"`
	// Admin is set if the page offers to change the tasks of others.
	Admin bool      `json:"admin,omitempty"`
	Ends  time.Time `json:"ends"`
	// Key must be sent with every request. The page stores it where only its own origin can
	// read it, because browsers send the cookie to every port of the host.
	Key string `json:"key,omitempty"`
}

func (p *page) login(w http.ResponseWriter, req *http.Request) {
	var in struct{ Ticket string }
	if err := json.NewDecoder(http.MaxBytesReader(w, req.Body, 1<<10)).Decode(&in); err != nil {
		refuse(w, http.StatusBadRequest, "no ticket")
		return
	}
	peer, known := 0, true
	if p.Logins.ticketed(in.Ticket) {
		peer, known = p.Peer(req.Context())
	}
	if !known {
		refuse(w, http.StatusForbidden, "the system does not tell whose connection this is; use the page's socket, see carma web")
		return
	}
	s, cookie, key := p.Logins.enter(in.Ticket, peer)
	if s == nil {
		refuse(w, http.StatusUnauthorized, fmt.Sprintf("this address does not sign in: it was used, is older than %s, or is another user's; run carma web again", TicketLife))
		return
	}
	if p.Entered != nil {
		p.Entered(s.user)
	}
	http.SetCookie(w, &http.Cookie{
		Name: p.cookie, Value: cookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, MaxAge: int(SessionLife.Seconds()),
	})
	answer(w, signedIn{s.user.Name, s.user.UID, p.Admin(s.user), s.ends, key})
}

func (p *page) about(w http.ResponseWriter, req *http.Request) {
	s := sessionOf(req)
	answer(w, signedIn{User: s.user.Name, UID: s.user.UID, Admin: p.Admin(s.user), Ends: s.ends})
}

func (p *page) logout(w http.ResponseWriter, req *http.Request) {
	p.Logins.leave(sessionOf(req))
	http.SetCookie(w, &http.Cookie{Name: p.cookie, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, MaxAge: -1})
	answer(w, struct{}{})
}

// ask passes a request to the API, as the user who is signed in.
func (p *page) ask(w http.ResponseWriter, req *http.Request) {
	if !mayAsk(req) {
		refuse(w, http.StatusForbidden, "the page cannot do this; the command line can")
		return
	}
	p.API.ServeHTTP(w, req.WithContext(p.As(req.Context(), sessionOf(req).user)))
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(v) // fails only if the client has disconnected
}

// refuse answers with a problem document, as the API does.
func refuse(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"status": status, "title": http.StatusText(status), "detail": detail})
}
