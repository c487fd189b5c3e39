package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"carma/runner/api"
)

// quick is a pace for tests.
var quick = Pace{Collect: 30 * time.Millisecond, Rest: 30 * time.Millisecond, Retry: 20 * time.Millisecond, Longest: 100 * time.Millisecond, Limit: 2 * time.Second}

// local allows the receivers of the tests, which listen on loopback.
var local = []string{"127.0.0.1"}

// office is a Post in a folder that can be opened again.
type office struct {
	t      *testing.T
	dir    string
	rules  Rules
	pace   Pace
	log    *safe
	counts map[string]int

	*Post
	mu   sync.Mutex
	stop func()
}

// safe is a buffer for several goroutines.
type safe struct {
	mu  sync.Mutex
	buf strings.Builder
}

func (s *safe) Write(b []byte) (int, error) { s.mu.Lock(); defer s.mu.Unlock(); return s.buf.Write(b) }
func (s *safe) String() string              { s.mu.Lock(); defer s.mu.Unlock(); return s.buf.String() }

func newOffice(t *testing.T) *office {
	o := &office{t: t, dir: t.TempDir(), pace: quick, log: &safe{}, counts: map[string]int{}, rules: Rules{Server: api.NotifySettings{Allow: local}}}
	t.Cleanup(func() { o.end() })
	return o
}

func (o *office) open() *office {
	o.t.Helper()
	p, err := Open(Options{Dir: o.dir, Host: "gpu1", Log: zerolog.New(o.log), Pace: o.pace, Count: func(kind, result string, n int) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.counts[kind+" "+result] += n
	}})
	if err != nil {
		o.t.Fatal(err)
	}
	p.SetRules(o.rules)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); p.Run(ctx) }()
	o.Post, o.stop = p, func() { cancel(); <-ended }
	return o
}

// kill ends sending as kill -9 does: nothing more is written, and nothing closed.
func (o *office) kill() { o.end() }

func (o *office) end() {
	if o.stop != nil {
		o.stop()
		o.stop = nil
	}
}

func (o *office) count(what string) int { o.mu.Lock(); defer o.mu.Unlock(); return o.counts[what] }

func (o *office) user(uid int, channels ...api.NotifyChannel) {
	o.t.Helper()
	if err := o.SetUser(uid, api.NotifySettings{Channels: channels}); err != nil {
		o.t.Fatal(err)
	}
}

func (o *office) put(seq int64, list ...Owned) {
	o.t.Helper()
	if err := o.Put(seq, nil, list); err != nil {
		o.t.Fatal(err)
	}
}

// receiver is a webhook that stores its messages.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []letter
	bodies []string
	heads  []http.Header
	answer func(w http.ResponseWriter, r *http.Request, n int) // nil answers 200
}

func receive(t *testing.T, answer func(http.ResponseWriter, *http.Request, int)) *receiver {
	r := &receiver{answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		var l letter
		_ = json.Unmarshal(body, &l)
		r.mu.Lock()
		r.got, r.bodies, r.heads = append(r.got, l), append(r.bodies, string(body)), append(r.heads, req.Header.Clone())
		n := len(r.got)
		r.mu.Unlock()
		if r.answer != nil {
			r.answer(w, req, n)
		}
	}))
	t.Cleanup(r.Server.Close)
	return r
}

func (r *receiver) letters() []letter { r.mu.Lock(); defer r.mu.Unlock(); return slices.Clone(r.got) }

// ids returns the ids of all received messages, including duplicates.
func (r *receiver) ids() (ids []string) {
	for _, l := range r.letters() {
		for _, m := range l.Messages {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

func hookTo(name string, r *receiver) api.NotifyChannel {
	return api.NotifyChannel{Name: name, Kind: "webhook", URL: r.URL + "/secret-path?token=secret-token"}
}

func failed(id int64, uid int) Owned {
	code := 3
	return Owned{UID: uid, Public: "it failed", Message: Message{
		ID: fmt.Sprint("m-", id), Event: api.NotifyFailed, Task: id, Name: "train", User: "ada", Time: time.Now(), ExitCode: &code,
		Reason: "exit code 3: private words", Output: []string{"last words"},
	}}
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(15 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in 15 s: %s", what)
		}
	}
}
