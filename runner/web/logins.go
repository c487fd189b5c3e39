package web

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"slices"
	"sync"
	"time"
)

const (
	// TicketLife is the time for which a ticket is valid, long enough to type an ssh
	// command.
	TicketLife = 5 * time.Minute
	// SessionLife is the time after which a session ends, used or not: a working day.
	SessionLife = 12 * time.Hour
	// Largest numbers per user. A further ticket or session ends the oldest one.
	maxTickets, maxSessions = 8, 16
)

// User is the user who is signed in.
type User struct {
	UID, GID int
	Name     string
}

// Logins contains the tickets and sessions, in memory only. A restart of the daemon signs
// everybody out. The methods are safe for concurrent use.
type Logins struct {
	now func() time.Time

	mu       sync.Mutex
	tickets  []*ticket  // oldest first
	sessions []*session // oldest first
}

// digest is the stored form of a secret. Somebody who reads the daemon's memory later
// cannot use it.
type digest [sha256.Size]byte

type ticket struct {
	user User
	ends time.Time
	of   digest
}

type session struct {
	user        User
	ends        time.Time
	cookie, key digest
	over        chan struct{} // closed when it ends before its time
}

// NewLogins returns empty Logins. now is the wall clock.
func NewLogins(now func() time.Time) *Logins { return &Logins{now: now} }

// secret returns 256 random bits as text.
func secret() string {
	b := make([]byte, 32)
	rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

func digestOf(text string) digest { return sha256.Sum256([]byte(text)) }

func (d digest) is(other digest) bool { return subtle.ConstantTimeCompare(d[:], other[:]) == 1 }

// secretLength is the length of a secret as text.
const secretLength = 43

// Ticket returns a text that signs a user in once, and the time at which it expires.
func (l *Logins) Ticket(u User) (text string, ends time.Time) {
	text, ends = secret(), l.now().Add(TicketLife)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweep()
	l.tickets = append(l.tickets, &ticket{u, ends, digestOf(text)})
	if mine := of(l.tickets, func(t *ticket) bool { return t.user.UID == u.UID }); len(mine) > maxTickets {
		l.tickets = without(l.tickets, mine[0])
	}
	return text, ends
}

// enter exchanges a ticket for a session, for a connection of the user peer.
func (l *Logins) enter(text string, peer int) (s *session, cookie, key string) {
	given := digestOf(text)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweep()
	for _, t := range l.tickets {
		if !t.of.is(given) || !mayBe(peer, t.user) {
			continue
		}
		l.tickets = without(l.tickets, t)
		cookie, key = secret(), secret()
		s = &session{t.user, l.now().Add(SessionLife), digestOf(cookie), digestOf(key), make(chan struct{})}
		l.sessions = append(l.sessions, s)
		if mine := of(l.sessions, func(x *session) bool { return x.user.UID == s.user.UID }); len(mine) > maxSessions {
			l.end(mine[0])
		}
		return s, cookie, key
	}
	return nil, "", ""
}

// ticketed reports whether a text is a ticket of any user.
func (l *Logins) ticketed(text string) bool {
	given := digestOf(text)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweep()
	return slices.ContainsFunc(l.tickets, func(t *ticket) bool { return t.of.is(given) })
}

// session returns the session of a cookie and a key, or nil if there is none. The caller
// must then check the user of the connection, see mayBe.
func (l *Logins) session(cookie, key string) *session {
	if len(cookie) != secretLength || len(key) != secretLength {
		return nil
	}
	theCookie, theKey := digestOf(cookie), digestOf(key)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweep()
	for _, s := range l.sessions {
		if s.cookie.is(theCookie) && s.key.is(theKey) {
			return s
		}
	}
	return nil
}

// leave ends a session.
func (l *Logins) leave(s *session) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end(s)
}

func (l *Logins) end(s *session) {
	if slices.Contains(l.sessions, s) {
		l.sessions = without(l.sessions, s)
		close(s.over)
	}
}

// sweep drops expired tickets and sessions.
func (l *Logins) sweep() {
	now := l.now()
	l.tickets = of(l.tickets, func(t *ticket) bool { return now.Before(t.ends) })
	for _, s := range of(l.sessions, func(s *session) bool { return !now.Before(s.ends) }) {
		l.end(s)
	}
}

// mayBe reports whether a connection of the user peer may belong to u. Root's connection
// may belong to anybody.
func mayBe(peer int, u User) bool { return peer == u.UID || peer == 0 }

func of[T any](all []*T, keep func(*T) bool) (some []*T) {
	for _, x := range all {
		if keep(x) {
			some = append(some, x)
		}
	}
	return some
}

func without[T any](all []*T, one *T) []*T { return of(all, func(x *T) bool { return x != one }) }
