package httplimit

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"carma/runner/request"
)

const (
	// atOnce is the number of requests of one user that are handled at a time. Further
	// requests wait, except root's. Streams do not count, because their connections are
	// limited.
	atOnce = 64
	// smallRequest is the size in bytes up to which requests do not wait for large ones.
	// Larger requests are handled one at a time, because they take many times their size
	// when decoded.
	smallRequest = 16 << 10
	// maxUnsent is the largest number of unfinished listings of one user, including listings
	// that wait to be read.
	maxUnsent = 4
	// StreamWrite bounds one write to a caller that does not read.
	StreamWrite = 30 * time.Second
)

// RequestLimiter bounds how many requests are handled at a time. A large request or a
// listing waits for the previous one of the same user, and then for at most one of each
// other user, so that nobody can fill the queue.
type RequestLimiter struct {
	mu    sync.Mutex
	users map[int]*requestLimits
	all   *requestLimits
}

// requestLimits holds the tokens of the requests that are handled now, by kind of
// request.
type requestLimits struct {
	any, large, lists, unsent chan struct{}
}

func newRequestLimits() *requestLimits {
	return &requestLimits{any: make(chan struct{}, atOnce), large: make(chan struct{}, 1), lists: make(chan struct{}, 1), unsent: make(chan struct{}, maxUnsent)}
}

// NewRequestLimiter returns a limiter that handles no request yet.
func NewRequestLimiter() *RequestLimiter {
	return &RequestLimiter{users: map[int]*requestLimits{}, all: newRequestLimits()}
}

// of returns the tokens of a user's requests.
func (t *RequestLimiter) of(uid int) *requestLimits {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.users[uid]
	if c == nil {
		c = newRequestLimits()
		t.users[uid] = c
	}
	return c
}

// take waits for places, one after the other. leave gives them back. ok is false if the
// caller has disconnected meanwhile; then no place is taken.
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

// Guard lets requests through in turn.
func (t *RequestLimiter) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if streams(req.URL.Path) && req.ContentLength <= smallRequest {
			next.ServeHTTP(w, req)
			return
		}
		uid := -1 // the caller is unknown
		if who, ok := request.CallerFrom(req.Context()); ok {
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

// streams reports whether the answer to a request may last: output, events, a
// terminal.
func streams(path string) bool {
	last := path[strings.LastIndexByte(path, '/')+1:]
	return last == "logs" || last == "events" || last == "attach" || last == "exec"
}

// list answers a listing. It gives its places back before the answer is sent, so that a
// slow reader delays nobody else.
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
	_ = out.SetWriteDeadline(time.Now().Add(StreamWrite))
	w.WriteHeader(made.status)
	_, _ = w.Write(made.body.Bytes()) // the write fails only if the caller has disconnected
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

// listing reports whether a request is for many tasks. Such answers are computed one at a
// time, so that submissions and stops do not wait for them.
func listing(req *http.Request) bool {
	return req.Method == http.MethodGet && (req.URL.Path == "/v1/tasks" || req.URL.Path == "/v1/timeline" || strings.HasPrefix(req.URL.Path, "/v1/groups/"))
}
