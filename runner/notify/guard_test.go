package notify

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"carma/runner/api"
)

// TestPublic checks that addresses of this machine and of private networks are refused in every
// spelling.
func TestPublic(t *testing.T) {
	for text, want := range map[string]bool{
		"8.8.8.8": true, "2606:4700::1111": true, "193.99.144.80": true,
		"127.0.0.1": false, "127.8.9.1": false, "::1": false, "0.0.0.0": false, "::": false, "0.1.2.3": false,
		"10.1.2.3": false, "172.16.0.1": false, "172.31.255.255": false, "192.168.1.1": false, "100.64.0.1": false,
		"169.254.169.254": false, "fe80::1": false, "fc00::1": false, "fd12:3456::1": false, "fec0::1": false,
		"::ffff:127.0.0.1": false, "::ffff:10.0.0.1": false, "::ffff:169.254.169.254": false, "::127.0.0.1": false, "::ffff:8.8.8.8": true, "::ffff:100.64.0.1": false,
		"64:ff9b::7f00:1": false, "64:ff9b::a00:1": false, "2002:7f00:1::": false, "2001:0:7f00:1::": false,
		"224.0.0.1": false, "ff02::1": false, "255.255.255.255": false, "240.0.0.1": false, "198.18.0.1": false, "192.0.2.1": false, "fe80::1%eth0": false,
	} {
		if got := public(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// Each spelling of a URL that leads to a local service is refused, and the service
// sees no connection.
func TestRefusedURLs(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	came := make(chan struct{}, 100)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			came <- struct{}{}
			c.Close()
		}
	}()
	port := ":" + strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	o := newOffice(t)
	o.rules.Server.Allow = nil
	o.open()
	for _, host := range []string{"127.0.0.1", "localhost", "LOCALHOST.", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0.0.0.0", "127.0.0.1.", "[::]"} {
		o.tested = map[int]time.Time{}
		o.user(1, api.NotifyChannel{Name: "a", Kind: "webhook", URL: "http://" + host + port + "/"})
		got, err := o.Test(context.Background(), 1, "eve", false, "a")
		if err != nil || got[0].OK {
			t.Errorf("%s: %v %+v", host, err, got)
		} else if text := got[0].Text; text != errRefused.Error() && !strings.Contains(text, "not known") && !strings.Contains(text, "looked up") {
			t.Errorf("%s: %s", host, text)
		}
	}
	o.tested = map[int]time.Time{}
	o.user(1, api.NotifyChannel{Name: "a", Kind: "mail", To: []string{"a@b.c"}, Server: "localhost" + port, From: "a@b.c"})
	if got, _ := o.Test(context.Background(), 1, "eve", false, "a"); got[0].Text != errRefused.Error() {
		t.Errorf("mail: %+v", got)
	}
	select {
	case <-came:
		t.Error("a connection came")
	case <-time.After(50 * time.Millisecond):
	}
}

// The address of the connection is checked, not an earlier result of the name's lookup.
func TestAllow(t *testing.T) {
	for _, test := range []struct {
		allow, host, at string
		want            bool
	}{
		{"", "hooks.lab", "10.1.2.3:80", false},
		{"hooks.lab", "hooks.lab", "10.1.2.3:80", true},
		{"hooks.lab", "HOOKS.lab.", "10.1.2.3:80", true},
		{"hooks.lab", "evil.lab", "10.1.2.3:80", false},
		{"hooks.lab:443", "hooks.lab", "10.1.2.3:80", false},
		{"10.1.0.0/16", "evil.lab", "10.1.2.3:80", true},
		{"10.1.0.0/16", "evil.lab", "10.2.2.3:80", false},
		{"10.1.2.3", "x", "[::ffff:10.1.2.3]:80", true},
		{"127.0.0.1:8080", "x", "127.0.0.1:8080", true},
		{"127.0.0.1:8080", "x", "127.0.0.1:22", false},
		{"hooks.lab", "example.org", "8.8.8.8:443", true},
	} {
		g := guard{}
		if test.allow != "" {
			a, err := ParseAllowed(test.allow)
			if err != nil {
				t.Fatal(err)
			}
			g.allow = []Allowed{a}
		}
		if got := g.may(test.host, netip.MustParseAddrPort(test.at)); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
	for _, text := range []string{"", "a b", "10.1.2", "10.1.2.3/99", "http://x/", "*"} {
		if a, err := ParseAllowed(text); err == nil {
			t.Errorf("%q: %+v", text, a)
		}
	}
}

// TestNoProxy checks that a proxy from the environment is not used, because it would see the
// messages and could connect to any address.
func TestNoProxy(t *testing.T) {
	r := receive(t, nil)
	t.Setenv("HTTP_PROXY", r.URL)
	t.Setenv("http_proxy", r.URL)
	o := newOffice(t).open()
	o.user(1, api.NotifyChannel{Name: "a", Kind: "webhook", URL: "http://carma-test.invalid/"})
	if got, err := o.Test(context.Background(), 1, "eve", false, "a"); err != nil || got[0].OK || len(r.letters()) > 0 {
		t.Error(err, got)
	}
}

func TestForms(t *testing.T) {
	r, o := receive(t, nil), newOffice(t).open()
	text := api.NotifyChannel{Name: "text", Kind: "webhook", URL: r.URL, Format: "text", Headers: map[string]string{"Authorization": "Bearer x"}}
	slack := api.NotifyChannel{Name: "slack", Kind: "slack", URL: r.URL}
	m := failed(1, 1000)
	m.Name, m.Reason, m.Output = "<!channel> & *x*\nBcc: a@b.c\u202e", "", []string{"```rm```", "<a>"}
	o.user(1000, text)
	o.put(1, m)
	until(t, "the text", func() bool { return len(r.letters()) == 1 })
	r.mu.Lock()
	h := r.heads[0]
	if title := h.Get("Title"); strings.ContainsAny(title, "\r\n") || h.Get("Bcc") != "" || h.Get("Authorization") != "Bearer x" || h.Get("Content-Type") != "text/plain; charset=utf-8" {
		t.Error(h)
	}
	if !strings.HasPrefix(r.bodies[0], "task 1 (<!channel> & *x* Bcc: a@b.c , ada) failed with exit code 3\n") {
		t.Errorf("%q", r.bodies[0])
	}
	r.mu.Unlock()
	o.user(1000, slack)
	m.ID = "again"
	o.put(2, m)
	until(t, "slack's", func() bool { return len(r.letters()) == 2 })
	r.mu.Lock()
	defer r.mu.Unlock()
	want := `{"text":"*[gpu1] task 1 (\u0026lt;!channel\u0026gt; \u0026amp; ∗x∗ Bcc: a@b.c ) failed*\ntask 1 (\u0026lt;!channel\u0026gt; \u0026amp; *x* Bcc: a@b.c , ada) failed with exit code 3\n` + "```'''rm'''\\n\\u0026lt;a\\u0026gt;```\"}"
	if r.bodies[1] != want {
		t.Errorf("%s\n%s", r.bodies[1], want)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, "-3": 0, "x": 0, "999999999": time.Hour, "99999999999999999999": 0,
		now.Add(90 * time.Second).Format(http.TimeFormat): 90 * time.Second, now.Add(-time.Hour).Format(http.TimeFormat): 0,
	} {
		if got := retryAfter(text, now); got != want {
			t.Errorf("%q: %s", text, got)
		}
	}
}

func TestLines(t *testing.T) {
	got := Lines([][]byte{[]byte("epoch 1: 10%\repoch 1: 100%"), []byte("\x1b[31mred\x1b[0m \x07"), []byte(""), []byte("a\xffb")})
	if strings.Join(got, "|") != "epoch 1: 100%|red|a?b" {
		t.Errorf("%q", got)
	}
}
