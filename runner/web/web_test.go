package web

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// door is a page with an API that names the caller.
type door struct {
	http.Handler
	logins *Logins
	peer   int // user of the next request, or -1 if unknown
}

type asked struct{}

func newDoor() *door {
	d := &door{logins: NewLogins(time.Now), peer: 1000}
	d.Handler = Handler(Options{
		Logins: d.logins,
		API: http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			io.WriteString(w, req.Method+" "+req.URL.Path+" as "+req.Context().Value(asked{}).(User).Name)
		}),
		As:    func(ctx context.Context, u User) context.Context { return context.WithValue(ctx, asked{}, u) },
		Peer:  func(context.Context) (int, bool) { return d.peer, d.peer >= 0 },
		Admin: func(u User) bool { return u.UID == 0 },
	})
	return d
}

var ada = User{1000, 1000, "ada"}

// visit makes a browser's request; change can turn it into an attacker's.
func (d *door) visit(method, path, body string, change ...func(*http.Request)) *http.Response {
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	req.Host = "127.0.0.1:7070"
	if method != http.MethodGet {
		req.Header.Set("Origin", "http://127.0.0.1:7070")
	}
	for _, f := range change {
		f(req)
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, req)
	return w.Result()
}

// signIn returns a function that adds a session to a request.
func (d *door) signIn(t *testing.T, u User) func(*http.Request) {
	t.Helper()
	ticket, _ := d.logins.Ticket(u)
	resp := d.visit("POST", "/login", `{"ticket":"`+ticket+`"}`)
	var in signedIn
	if err := json.NewDecoder(resp.Body).Decode(&in); err != nil || resp.StatusCode != 200 || in.User != u.Name || in.Key == "" {
		t.Fatalf("%d %+v %v", resp.StatusCode, in, err)
	}
	cookie := resp.Cookies()[0]
	if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.MaxAge <= 0 || cookie.Path != "/" {
		t.Errorf("cookie %+v", cookie)
	}
	return func(req *http.Request) { req.AddCookie(cookie); req.Header.Set("Carma-Key", in.Key) }
}

func body(resp *http.Response) string { b, _ := io.ReadAll(resp.Body); return string(b) }

// TestSession: the user of a session is the API's caller.
func TestSession(t *testing.T) {
	d := newDoor()
	in := d.signIn(t, ada)
	if got := body(d.visit("GET", "/v1/tasks", "", in)); got != "GET /v1/tasks as ada" {
		t.Error(got)
	}
	if got := body(d.visit("POST", "/v1/tasks/17/stop", "{}", in)); got != "POST /v1/tasks/17/stop as ada" {
		t.Error(got)
	}
	if got := body(d.visit("GET", "/session", "", in)); !strings.Contains(got, `"user":"ada"`) || strings.Contains(got, "key") {
		t.Error(got)
	}
	if resp := d.visit("POST", "/logout", "", in); resp.StatusCode != 200 {
		t.Error(resp.Status)
	}
	if resp := d.visit("GET", "/v1/tasks", "", in); resp.StatusCode != 401 {
		t.Errorf("after signing out: %s", resp.Status)
	}
}

// TestWalls tests each protection with an attack on it. The same request without the attack
// passes.
func TestWalls(t *testing.T) {
	host := func(h string) func(*http.Request) { return func(r *http.Request) { r.Host = h } }
	header := func(k, v string) func(*http.Request) { return func(r *http.Request) { r.Header.Set(k, v) } }
	without := func(k string) func(*http.Request) { return func(r *http.Request) { r.Header.Del(k) } }
	d := newDoor()
	in := d.signIn(t, ada)
	for _, c := range []struct {
		name, method, path string
		attack             func(*http.Request)
		want               int
	}{
		{"a name that a foreign name server gives (DNS rebinding)", "GET", "/v1/tasks", host("evil.example:7070"), 421},
		{"the same for a file of the page", "GET", "/", host("evil.example:7070"), 421},
		{"a name that begins alike", "GET", "/v1/tasks", host("127.0.0.1.evil.example"), 421},
		{"a name below localhost", "GET", "/v1/tasks", host("evil.localhost"), 421},
		{"no host", "GET", "/v1/tasks", host(""), 421},
		{"a form of another page", "POST", "/v1/tasks/17/stop", header("Origin", "http://evil.example"), 403},
		{"a form of another port's page", "POST", "/v1/tasks/17/stop", header("Origin", "http://127.0.0.1:8888"), 403},
		{"a form of a page without origin", "POST", "/v1/tasks/17/stop", header("Origin", "null"), 403},
		{"a write without an origin", "POST", "/v1/tasks/17/stop", without("Origin"), 403},
		{"a read by another page", "GET", "/v1/tasks", header("Sec-Fetch-Site", "cross-site"), 403},
		{"a read by another port's page", "GET", "/v1/tasks", header("Sec-Fetch-Site", "same-site"), 403},
		{"a cookie without its key, as every port of this host gets it", "GET", "/v1/tasks", without("Carma-Key"), 401},
		{"another key", "GET", "/v1/tasks", header("Carma-Key", secret()), 401},
		{"a key without its cookie", "GET", "/v1/tasks", without("Cookie"), 401},
		{"another user's connection with all secrets", "GET", "/v1/tasks", func(*http.Request) { d.peer = 1001 }, 401},
		{"a connection of nobody known", "GET", "/v1/tasks", func(*http.Request) { d.peer = -1 }, 401},
		{"a submission", "POST", "/v1/tasks", nil, 403},
		{"a command in a task", "POST", "/v1/tasks/17/exec", nil, 403},
		{"a terminal", "POST", "/v1/tasks/17/attach", nil, 403},
		{"a ticket for a further session", "POST", "/v1/web", nil, 403},
		{"a removal", "DELETE", "/v1/tasks/17", header("Origin", "http://127.0.0.1:7070"), 403},
		{"what admins do", "POST", "/v1/drain", nil, 403},
		{"a path that is read twice", "POST", "/v1/tasks/..%2f..%2fdrain/stop", nil, 403},
		{"a path with a step up", "GET", "/v1/tasks/../../etc/passwd", nil, 307},
	} {
		d.peer = 1000
		if c.attack != nil {
			method, path := http.MethodPost, "/v1/tasks/17/stop"
			if c.method == "GET" {
				method, path = "GET", "/v1/tasks"
			}
			if resp := d.visit(method, path, "{}", in); resp.StatusCode != 200 {
				t.Errorf("%s: without the attack %s", c.name, resp.Status)
			}
		}
		resp := d.visit(c.method, c.path, "{}", in, func(r *http.Request) {
			if c.attack != nil {
				c.attack(r)
			}
		})
		if got := body(resp); resp.StatusCode != c.want || strings.Contains(got, "as ada") {
			t.Errorf("%s: %s %s; want %d", c.name, resp.Status, got, c.want)
		}
	}
	d.peer = 0
	if got := body(d.visit("GET", "/v1/tasks", "", in)); !strings.HasSuffix(got, "as ada") {
		t.Errorf("root's connection: %s", got)
	}
}

// TestTickets checks that a ticket can be used once, for a limited time, and only by its user.
func TestTickets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor()
		try := func(ticket string) int {
			return d.visit("POST", "/login", `{"ticket":"`+ticket+`"}`).StatusCode
		}
		ticket, _ := d.logins.Ticket(ada)
		d.peer = 1001
		if got := try(ticket); got != 401 {
			t.Errorf("another user's connection: %d", got)
		}
		d.peer = 1000
		if got := try(ticket); got != 200 {
			t.Errorf("the first time: %d; another user has used it up", got)
		}
		if got := try(ticket); got != 401 {
			t.Errorf("the second time: %d", got)
		}
		ticket, _ = d.logins.Ticket(ada)
		time.Sleep(TicketLife)
		if got := try(ticket); got != 401 {
			t.Errorf("an old ticket: %d", got)
		}
		for _, wrong := range []string{"", secret(), "'; --"} {
			if got := try(wrong); got != 401 {
				t.Errorf("ticket %q: %d", wrong, got)
			}
		}
		if got := d.visit("POST", "/login", strings.Repeat("x", 1<<20)).StatusCode; got != 400 {
			t.Errorf("a large ticket: %d", got)
		}
	})
}

// TestSessionsEnd checks that sessions end after their time, and that the oldest ends when a
// user has too many.
func TestSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoor()
		bela := d.signIn(t, User{1000, 1000, "ada"})
		status := func(in func(*http.Request)) int { return d.visit("GET", "/v1/tasks", "", in).StatusCode }
		time.Sleep(SessionLife - time.Second)
		if got := status(bela); got != 200 {
			t.Errorf("just before its end: %d", got)
		}
		time.Sleep(time.Second)
		if got := status(bela); got != 401 {
			t.Errorf("after its end: %d", got)
		}
		first := d.signIn(t, ada)
		for range maxSessions - 1 {
			d.signIn(t, ada)
		}
		if got := status(first); got != 200 {
			t.Errorf("with %d sessions: %d", maxSessions, got)
		}
		d.signIn(t, ada)
		if got := status(first); got != 401 {
			t.Errorf("with one more: %d", got)
		}
		for range 100 {
			d.logins.Ticket(ada)
		}
		if n := len(d.logins.tickets); n != maxTickets {
			t.Errorf("%d tickets", n)
		}
	})
}

// TestHeaders: every answer has the protective headers, and without a session only the page's
// files are served.
func TestHeaders(t *testing.T) {
	d := newDoor()
	for _, path := range []string{"/", "/main.js", "/none", "/v1/tasks", "/session"} {
		resp := d.visit("GET", path, "")
		for k, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'", "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		} {
			if got := resp.Header.Get(k); !strings.HasPrefix(got, want) {
				t.Errorf("%s: %s: %q", path, k, got)
			}
		}
		if strings.Contains(resp.Header.Get("Content-Security-Policy"), "unsafe") {
			t.Error("the policy allows what is unsafe")
		}
		if _, ok := resp.Header["Access-Control-Allow-Origin"]; ok {
			t.Errorf("%s: other pages may read it", path)
		}
	}
	if got := d.visit("POST", "/", "").StatusCode; got != 404 {
		t.Errorf("a write to a file: %d", got)
	}
}

// TestSize checks that the page is smaller than 300 KB even without compression.
func TestSize(t *testing.T) {
	all, packed := 0, 0
	for _, f := range load() {
		all += len(f.body)
		packed += len(f.packed)
	}
	t.Logf("the page: %d bytes, %d as sent", all, packed)
	if all > 300_000 {
		t.Errorf("the page has %d bytes", all)
	}
}

// TestFiles: nothing in the page names another server, or is read as HTML.
func TestFiles(t *testing.T) {
	for name, f := range load() {
		if strings.HasPrefix(name, "/others/") {
			continue
		}
		for _, bad := range []string{"innerHTML", "outerHTML =", "insertAdjacentHTML", "document.write", "eval(", "https://", " style=\"", "<script>"} {
			if strings.Contains(string(f.body), bad) {
				t.Errorf("%s has %s", name, bad)
			}
		}
	}
}

// TestPeer: the kernel's table has the owner of a connection while it is open.
func TestPeer(t *testing.T) {
	for _, at := range []string{"127.0.0.1:0", "[::1]:0"} {
		l, err := net.Listen("tcp", at)
		if err != nil {
			t.Log(err)
			continue
		}
		defer l.Close()
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		server, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if uid, ok := PeerOf(server); !ok || uid != os.Getuid() {
			t.Errorf("%s: %d %v", at, uid, ok)
		}
		client.Close() // the kernel shows it as root's from now on
		if uid, ok := PeerOf(server); ok {
			t.Errorf("%s: a closed connection is of user %d", at, uid)
		}
		server.Close()
	}
}

// TestTable checks that connections in other states, on other ports and in invalid lines have
// no user.
func TestTable(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1B9E 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1
   1: 0100007F:C001 0100007F:1B9E 06 00000000:00000000 03:000017A0 00000000     0        0 0 3
   2: 0100007F:C002 0100007F:1B9E 01 00000000:00000000 00:00000000 00000000  4001        0 2 1
   3: 0100007F:1B9E 0100007F:C002 01 00000000:00000000 00:00000000 00000000     0        0 3 1
   4: 0100007F:C003 0100007F:1B9E 08 00000000:00000000 00:00000000 00000000     0        0 3 1
   5: 0100007F:C004 0100007F:1B9E
   6: 0100007F:C005 0100007F:1B9E 01 00000000:00000000 00:00000000 00000000  x 0 3 1
`
	to := netip.MustParseAddrPort("127.0.0.1:7070")
	for port, want := range map[uint16]int{0xc001: -1, 0xc002: 4001, 0xc003: -1, 0xc004: -1, 0xc005: -1, 0xc006: -1} {
		got, ok := ownerIn(strings.NewReader(table), netip.AddrPortFrom(to.Addr(), port), to)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("port %x: user %d, want %d", port, got, want)
		}
	}
}
