package runner

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"carma/runner/api"
)

const (
	// atOnce is how many requests of one user are worked on at a time; more wait.
	// Root's do not. Streams do not count: their connections are bounded.
	atOnce = 64
	// smallRequest is a body that anybody may send at any time; larger ones are
	// taken one at a time, since what is made of one takes many times its size.
	smallRequest = 16 << 10
	// pageBytes is about how much one page of a listing may have; pageTasks how
	// many tasks.
	pageBytes = 8 << 20
	pageTasks = 1000
)

// turnstile bounds what is worked on at a time.
type turnstile struct {
	mu    sync.Mutex
	users map[int]chan struct{}
	large chan struct{}
	lists chan struct{}
}

func newTurnstile() *turnstile {
	return &turnstile{users: map[int]chan struct{}{}, large: make(chan struct{}, 1), lists: make(chan struct{}, 1)}
}

// of is what a user's requests take their turns by.
func (t *turnstile) of(uid int) chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.users[uid]
	if c == nil {
		c = make(chan struct{}, atOnce)
		t.users[uid] = c
	}
	return c
}

func take(ctx context.Context, c chan struct{}) bool {
	select {
	case c <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// guard lets requests through in turn.
func (t *turnstile) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		ctx := req.Context()
		if strings.HasSuffix(req.URL.Path, "/logs") || strings.HasSuffix(req.URL.Path, "/events") {
			next.ServeHTTP(w, req)
			return
		}
		if who, ok := callerFrom(ctx); ok && who.UID != 0 {
			c := t.of(who.UID)
			if !take(ctx, c) {
				return
			}
			defer func() { <-c }()
		}
		if req.ContentLength < 0 || req.ContentLength > smallRequest {
			if !take(ctx, t.large) {
				return
			}
			defer func() { <-t.large }()
		}
		if listing(req) {
			t.list(w, req, next)
			return
		}
		next.ServeHTTP(w, req)
	})
}

// list answers a listing. Its turn ends before it is sent: who reads slowly, or
// not at all, holds up nobody.
func (t *turnstile) list(w http.ResponseWriter, req *http.Request, next http.Handler) {
	if !take(req.Context(), t.lists) {
		return
	}
	made := &answerBuffer{header: w.Header(), status: http.StatusOK}
	func() {
		defer func() { <-t.lists }()
		next.ServeHTTP(made, req)
	}()
	out := http.NewResponseController(w)
	_ = out.SetWriteDeadline(time.Now().Add(streamWrite))
	w.WriteHeader(made.status)
	_, _ = w.Write(made.body.Bytes()) // an error is the caller's absence
	_ = out.Flush()
	_ = out.SetWriteDeadline(time.Time{}) // the connection may be used again
}

// answerBuffer keeps an answer until it is sent.
type answerBuffer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (b *answerBuffer) Header() http.Header         { return b.header }
func (b *answerBuffer) WriteHeader(status int)      { b.status = status }
func (b *answerBuffer) Write(p []byte) (int, error) { return b.body.Write(p) }

// listing reports whether a request is for many tasks. They are made one page at
// a time, so that those who submit and stop need not wait for those who look.
func listing(req *http.Request) bool {
	return req.Method == http.MethodGet && (req.URL.Path == "/v1/tasks" || strings.HasPrefix(req.URL.Path, "/v1/groups/"))
}

// page cuts a listing, newest first, to one page. next is the number to ask
// for what is before; 0: that was all.
func page(recs []*Record, limit int) (some []*Record, next int64) {
	bytes := int64(0)
	for i, rec := range recs {
		bytes += sizeOf(&rec.Submit)
		if i > 0 && (i >= limit || bytes > pageBytes) {
			return recs[:i], int64(recs[i-1].ID())
		}
	}
	return recs, 0
}

// pageLimit is how many tasks a page has when so many were asked for.
func pageLimit(o api.ListOptions) int {
	if o.Limit <= 0 || o.Limit > pageTasks {
		return pageTasks
	}
	return o.Limit
}
