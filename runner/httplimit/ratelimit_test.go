package httplimit

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"carma/runner/request"
)

// TestTurns: a user who sends very many requests delays another user by at most one request,
// for large requests and for listings.
func TestTurns(t *testing.T) {
	for _, path := range []string{"/v1/submissions", "/v1/tasks"} {
		t.Run(path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var order []int
				begin := make(chan struct{})
				h := NewRequestLimiter().Guard(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
					who, _ := request.CallerFrom(req.Context())
					mu.Lock()
					order = append(order, who.UID)
					mu.Unlock()
					<-begin
				}))
				var all sync.WaitGroup
				ask := func(uid int) {
					method, body := http.MethodPost, strings.NewReader(strings.Repeat("x", smallRequest+1))
					if path == "/v1/tasks" {
						method, body = http.MethodGet, strings.NewReader("")
					}
					req := httptest.NewRequest(method, path, body).WithContext(request.WithCaller(t.Context(), request.Caller{UID: uid}))
					all.Go(func() { h.ServeHTTP(httptest.NewRecorder(), req) })
				}
				for range 100 {
					ask(1)
				}
				synctest.Wait()
				ask(2)
				synctest.Wait() // it waits for the request in progress
				close(begin)
				all.Wait()
				if len(order) != 101 || order[0] != 1 || order[1] != 2 {
					t.Errorf("the order was %v", order)
				}
			})
		})
	}
}

// TestUnsent checks that unread pages take at most the memory of a few pages.
func TestUnsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		made := 0
		h := NewRequestLimiter().Guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			made++
		}))
		read := make(chan struct{})
		var all sync.WaitGroup
		for range 100 {
			req := httptest.NewRequest(http.MethodGet, "/v1/tasks", nil).WithContext(request.WithCaller(t.Context(), request.Caller{UID: 1}))
			all.Go(func() { h.ServeHTTP(unread{httptest.NewRecorder(), read}, req) })
		}
		synctest.Wait()
		if made != maxUnsent {
			t.Errorf("%d pages were made and none is read, want %d", made, maxUnsent)
		}
		close(read)
		all.Wait()
		if made != 100 {
			t.Errorf("%d of 100 were answered", made)
		}
	})
}

// unread is a caller who does not read for some time.
type unread struct {
	http.ResponseWriter
	read <-chan struct{}
}

func (u unread) Write(p []byte) (int, error) {
	<-u.read
	return u.ResponseWriter.Write(p)
}
