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
	pageBytes = 2 << 20
	pageTasks = 1000
	// maxUnsent is how many pages of one user may wait to be read by whoever asked.
	maxUnsent = 4
)

// turnstile bounds what is worked on at a time. Who asks for something large, or
// for a listing, waits for their own request before it, and then for one of each
// other user at most: nobody can fill the queue.
type turnstile struct {
	mu    sync.Mutex
	users map[int]*turns
	all   *turns
}

// turns are places: who has put a token into one has it.
type turns struct {
	any, large, lists, unsent chan struct{}
}

func newTurns() *turns {
	return &turns{any: make(chan struct{}, atOnce), large: make(chan struct{}, 1), lists: make(chan struct{}, 1), unsent: make(chan struct{}, maxUnsent)}
}

func newTurnstile() *turnstile { return &turnstile{users: map[int]*turns{}, all: newTurns()} }

// of is what a user's requests take their turns by.
func (t *turnstile) of(uid int) *turns {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.users[uid]
	if c == nil {
		c = newTurns()
		t.users[uid] = c
	}
	return c
}

// take waits for places, one after the other, and returns how to leave them; false
// if the caller has gone away meanwhile.
func take(ctx context.Context, places ...chan struct{}) (leave func(), ok bool) {
	leave = func() {}
	for _, c := range places {
		select {
		case c <- struct{}{}:
			before := leave
			leave = func() { <-c; before() }
		case <-ctx.Done():
			leave()
			return nil, false
		}
	}
	return leave, true
}

// guard lets requests through in turn.
func (t *turnstile) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if strings.HasSuffix(req.URL.Path, "/logs") || strings.HasSuffix(req.URL.Path, "/events") {
			next.ServeHTTP(w, req)
			return
		}
		uid := -1 // not known
		if who, ok := callerFrom(req.Context()); ok {
			uid = who.UID
		}
		mine := t.of(uid)
		var places []chan struct{}
		if uid != 0 {
			places = append(places, mine.any)
		}
		if req.ContentLength < 0 || req.ContentLength > smallRequest {
			places = append(places, mine.large, t.all.large)
		}
		if listing(req) {
			places = append(places, mine.unsent)
		}
		leave, ok := take(req.Context(), places...)
		if !ok {
			return
		}
		defer leave()
		if listing(req) {
			list(w, req, next, mine.lists, t.all.lists)
			return
		}
		next.ServeHTTP(w, req)
	})
}

// list answers a listing. Its turn ends before it is sent: who reads slowly, or
// not at all, holds up nobody.
func list(w http.ResponseWriter, req *http.Request, next http.Handler, places ...chan struct{}) {
	leave, ok := take(req.Context(), places...)
	if !ok {
		return
	}
	made := &answerBuffer{header: w.Header(), status: http.StatusOK}
	func() {
		defer leave()
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
