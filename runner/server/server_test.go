package server

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carma/runner/request"
)

// newServer returns a server whose API is h.
func newServer(h http.Handler, stops func()) *Server {
	return New(Config{
		API: func() http.Handler { return h }, Guard: func(http.Handler) http.Handler { return http.NotFoundHandler() }, BeginStop: stops,
		Connections: func() int { return 0 }, Unlimited: func(int) bool { return true },
		Caller: request.LookupCaller, Administers: func(c request.Caller) bool { return c.UID == 0 },
	})
}

// get asks for the path / at a socket.
func get(socket string) (string, error) {
	c := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", socket) }}}
	defer c.CloseIdleConnections()
	resp, err := c.Get("http://carma/")
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

// TestListen checks that a socket at which nobody answers is replaced, and another daemon's
// is not.
func TestListen(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "run", "s")
	l, err := Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o666 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := Listen(socket); !errors.Is(err, ErrSocketInUse) {
		t.Errorf("beside another: %v", err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	if l, err = Listen(socket); err != nil {
		t.Fatalf("after a crash: %v", err)
	}
	l.Close()
}

// TestRun checks that the API is answered at the socket, that the end ends the streams and
// waits for connections that were taken over, and that the loop learns of it first.
func TestRun(t *testing.T) {
	begun, ended := make(chan struct{}), make(chan struct{})
	stopped := false
	var s *Server
	s = newServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.WriteString(w, "it answers")
		if req.Method == http.MethodPost {
			defer s.Upgraded()()
			w.(http.Flusher).Flush()
			close(begun)
			<-req.Context().Done()
			if !stopped {
				t.Error("its stream ends before the stop has begun")
			}
			close(ended)
		}
	}), func() { stopped = true })
	socket := filepath.Join(t.TempDir(), "s")
	l, err := Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	result := make(chan error, 1)
	go func() { result <- s.Run(ctx, l) }()
	if text, err := get(socket); err != nil || text != "it answers" {
		t.Errorf("%q, %v", text, err)
	}
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: carma\r\nContent-Length: 0\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-begun
	end()
	if err := <-result; err != nil {
		t.Error(err)
	}
	<-ended
	if _, err := get(socket); err == nil {
		t.Error("it answers after its end")
	}
}

// TestWebLogin checks that a daemon without a page says why.
func TestWebLogin(t *testing.T) {
	s := newServer(nil, nil)
	if _, err := s.WebLogin(request.Caller{Name: "ann"}); err == nil || !strings.Contains(err.Error(), "web: off") {
		t.Error(err)
	}
	s.SetPage(Page{Note: "127.0.0.1:1: no"})
	if _, err := s.WebLogin(request.Caller{Name: "ann"}); err == nil || !strings.HasSuffix(err.Error(), "127.0.0.1:1: no") {
		t.Error(err)
	}
	l, err := Listen(filepath.Join(t.TempDir(), "page"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s.SetPage(Page{Listeners: []net.Listener{l}, Socket: l.Addr().String()})
	if login, err := s.WebLogin(request.Caller{Name: "ann"}); err != nil || login.Ticket == "" || login.Socket != l.Addr().String() {
		t.Errorf("%+v, %v", login, err)
	}
}

// TestWhileStopping: once the daemon stops, requests that would change something are refused
// with 503, and so are requests that were waiting then. An earlier version answered some with
// 422 "context canceled" (F13).
func TestWhileStopping(t *testing.T) {
	for _, status := range []int{422, 499, 500, 503} {
		ctx, stop := context.WithCancel(t.Context())
		h := whileStopping(ctx, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			stop()
			http.Error(w, "context canceled", status)
		}))
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest("POST", "/v1/tasks", nil))
		if rec.Code != 503 || rec.Header().Get("Retry-After") == "" || strings.Contains(rec.Body.String(), "canceled") || !strings.Contains(rec.Body.String(), "stopping") {
			t.Errorf("%d became %d %q", status, rec.Code, rec.Body)
		}
		rec = httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest("DELETE", "/v1/tasks/1", nil))
		if rec.Code != 503 || rec.Header().Get("Retry-After") == "" {
			t.Errorf("a request after it: %d", rec.Code)
		}
	}
	// A successful change is answered as successful.
	ctx, stop := context.WithCancel(t.Context())
	h := whileStopping(ctx, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		stop()
		_, _ = io.WriteString(w, "taken")
	}))
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest("POST", "/v1/tasks", nil))
	if rec.Code != 200 || rec.Body.String() != "taken" {
		t.Errorf("%d %q", rec.Code, rec.Body)
	}
}
