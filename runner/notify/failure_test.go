package notify

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestRetries(t *testing.T) {
	for _, test := range []struct {
		name    string
		codes   []int // then 200
		after   string
		letters int
		waits   time.Duration
		dropped int
	}{
		{name: "server errors", codes: []int{500, 502, 503}, letters: 4},
		{name: "rate limit", codes: []int{429}, after: "1", letters: 2, waits: time.Second},
		{name: "not found", codes: []int{404}, letters: 1, dropped: 1},
		{name: "redirect", codes: []int{302}, letters: 1, dropped: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			elsewhere := receive(t, nil)
			r, o := receive(t, func(w http.ResponseWriter, _ *http.Request, n int) {
				if n <= len(test.codes) {
					w.Header().Set("Retry-After", test.after)
					w.Header().Set("Location", elsewhere.URL)
					w.WriteHeader(test.codes[n-1])
				}
			}), newOffice(t).open()
			o.user(1000, hookTo("a", r))
			begun := time.Now()
			o.put(1, failed(1, 1000))
			until(t, "the end", func() bool { c := o.Channels(1000)[0]; return c.Waiting == 0 && (c.Dropped > 0 || !c.Sent.IsZero()) })
			if n := len(r.letters()); n != test.letters || time.Since(begun) < test.waits || o.Channels(1000)[0].Dropped != test.dropped {
				t.Errorf("%d letters in %s, %+v", n, time.Since(begun), o.Channels(1000)[0])
			}
			if len(elsewhere.letters()) > 0 {
				t.Error("a redirect was followed")
			}
			for _, id := range r.ids() {
				if id != "m-1" {
					t.Error("the id changed:", id)
				}
			}
		})
	}
}

// TestOverflow checks that, if there are more messages than a channel holds, the newest are
// kept and the next mail reports the loss.
func TestOverflow(t *testing.T) {
	r, o := receive(t, nil), newOffice(t)
	o.pace.Collect = time.Second
	o.open()
	o.user(1000, hookTo("a", r))
	var list []Owned
	for i := range int64(most + 5) {
		list = append(list, failed(1+i, 1000))
	}
	o.put(1, list...)
	until(t, "the letter", func() bool { return len(r.letters()) == 1 })
	if l := r.letters()[0]; l.Messages[0].ID != "m-6" || !strings.HasSuffix(l.Text, "5 earlier messages could not be sent and are lost") {
		t.Error(l.Messages[0].ID, l.Text[len(l.Text)-80:])
	}
	if o.count("webhook dropped") != 5 {
		t.Error(o.counts)
	}
}

// TestMended checks that a fixed channel is tried at once, and that a removed channel is not
// tried again.
func TestMended(t *testing.T) {
	r, o := receive(t, nil), newOffice(t)
	o.pace.Retry, o.pace.Longest = time.Hour, time.Hour
	o.open()
	bad := receive(t, func(w http.ResponseWriter, _ *http.Request, _ int) { w.WriteHeader(500) })
	o.user(1000, hookTo("a", bad))
	o.put(1, failed(1, 1000))
	until(t, "the failure", func() bool { return o.Channels(1000)[0].Error == "it answered 500 Internal Server Error" })
	o.user(1000, hookTo("a", r))
	until(t, "the message", func() bool { return len(r.ids()) == 1 })
}

// TestSecrets checks that secrets are stored only in the users' own files.
func TestSecrets(t *testing.T) {
	bad := receive(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.WriteHeader(500)
		fmt.Fprint(w, "secret-answer")
	})
	o := newOffice(t).open()
	c := hookTo("a", bad)
	c.Headers = map[string]string{"Authorization": "Bearer secret-header"}
	gone := c
	gone.Name, gone.URL = "b", "http://secret-user:secret-password@127.0.0.1:1/secret-path"
	o.user(1000, c, gone)
	o.put(1, failed(1, 1000))
	until(t, "failures", func() bool { s := o.Channels(1000); return s[0].Error != "" && s[1].Error != "" })
	tested, err := o.Test(context.Background(), 1000, "ada", false, "")
	if err != nil || tested[0].OK {
		t.Fatal(err, tested)
	}
	shown, _ := json.Marshal([]any{o.Channels(1000), tested})
	outbox, _ := os.ReadFile(filepath.Join(o.dir, "outbox"))
	for where, text := range map[string]string{"log": o.log.String(), "answers": string(shown), "outbox": string(outbox)} {
		if strings.Contains(text, "secret") || text == "" {
			t.Errorf("%s: %s", where, text)
		}
	}
	kept, _ := os.ReadFile(o.userFile(1000))
	info, err := os.Stat(o.userFile(1000))
	if err != nil || info.Mode().Perm() != 0o600 || !strings.Contains(string(kept), "secret-header") {
		t.Error(info, err)
	}
	if info, _ := os.Stat(o.dir); info.Mode().Perm() != 0o700 {
		t.Error(info.Mode())
	}
	if _, err := o.Test(context.Background(), 1000, "ada", false, "a"); err != ErrTooSoon {
		t.Error(err)
	}
	if len(o.Channels(1001)) != 0 || len(o.User(1001)) != 0 {
		t.Error("another user sees them")
	}
	o.user(1000)
	if _, err := os.Stat(o.userFile(1000)); !os.IsNotExist(err) {
		t.Error("the file stays", err)
	}
}

// TestTransport checks that errors of connections are reported with carma's own text, because
// the libraries' errors contain addresses, and the receivers' errors may contain any text.
func TestTransport(t *testing.T) {
	for want, err := range map[string]error{
		"the connection failed":                  errors.New("secret"),
		"its host is not known":                  &net.DNSError{Err: "secret", Name: "secret", IsNotFound: true},
		"it did not answer in time":              context.DeadlineExceeded,
		"nobody listens there":                   &net.OpError{Op: "secret", Err: syscall.ECONNREFUSED},
		"its certificate is not valid here":      x509.HostnameError{Certificate: &x509.Certificate{}, Host: "secret"},
		errRefused.Error():                       &net.OpError{Op: "secret", Err: errRefused},
		"it cannot be reached from this machine": syscall.EHOSTUNREACH,
	} {
		if got := transport(&url.Error{Op: "Post", URL: "https://secret/", Err: err}); got.Error() != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}
