package runner

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/request"
	"carma/runner/server"
	"carma/runner/web"

	"golang.org/x/sys/unix"
)

// visitorOf is a client that is signed in to the page.
type visitorOf struct {
	t    *testing.T
	http *http.Client
	host string
	key  string
}

func (l *lab) url() *url.URL { return &url.URL{Scheme: "http", Host: l.port, Path: "/"} }

// ticket returns a ticket for the page.
func (l *lab) ticket(u web.User) string {
	l.t.Helper()
	login, err := l.Runner.Server().WebLogin(request.Caller{UID: u.UID, GID: u.GID, Name: u.Name})
	if err != nil {
		l.t.Fatal(err)
	}
	return login.Ticket
}

// visit signs a user in, at the port or through the socket.
func (l *lab) visit(u web.User, socket bool) *visitorOf {
	l.t.Helper()
	jar, _ := cookiejar.New(nil)
	v := &visitorOf{t: l.t, http: &http.Client{Jar: jar}, host: l.port}
	if socket {
		v.http.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", l.socket)
		}}
	}
	ticket := l.ticket(u)
	status, text := v.ask("POST", "/login", `{"ticket":"`+ticket+`"}`)
	var in struct{ User, Key string }
	if err := json.Unmarshal([]byte(text), &in); err != nil || status != 200 || in.User != u.Name {
		l.t.Fatalf("%d %s %v", status, text, err)
	}
	v.key = in.Key
	return v
}

func (v *visitorOf) ask(method, path, body string) (status int, text string) {
	v.t.Helper()
	req, err := http.NewRequest(method, "http://"+v.host+path, strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	req.Header.Set("Carma-Key", v.key)
	if method != http.MethodGet {
		req.Header.Set("Origin", "http://"+v.host)
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := v.http.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

// TestPageRights: a signed-in user has the same rights on the page as in the API.
func TestPageRights(t *testing.T) {
	l := newLab(t, 2, 6)
	for _, socket := range []bool{false, true} {
		ada := l.visit(web.User{UID: 4001, GID: 4001, Name: "ada"}, socket)
		mine, others := "5", "6" // ada's and bela's
		if _, text := ada.ask("GET", "/v1/tasks/"+mine, ""); !strings.Contains(text, "secret-of-ada") {
			t.Errorf("her own environment: %s", text)
		}
		status, text := ada.ask("GET", "/v1/tasks/"+others, "")
		if status != 200 || strings.Contains(text, "secret-of-bela") || !strings.Contains(text, `"env_hidden":true`) {
			t.Errorf("another's environment: %d %s", status, text)
		}
		if status, text = ada.ask("GET", "/v1/tasks", ""); status != 200 || strings.Contains(text, "secret-of-bela") {
			t.Errorf("the list has another's environment: %d", status)
		}
		if status, text = ada.ask("GET", "/v1/tasks/"+others+"/logs", ""); status != 403 || strings.Contains(text, "Epoch") {
			t.Errorf("another's output: %d %s", status, text)
		}
		for _, verb := range []string{"stop", "hold", "release", "suspend", "resume"} {
			if status, text = ada.ask("POST", "/v1/tasks/"+others+"/"+verb, "{}"); status != 403 {
				t.Errorf("%s another's: %d %s", verb, status, text)
			}
		}
		if status, text = ada.ask("GET", "/v1/timeline", ""); status != 200 || !strings.Contains(text, `"user":"bela"`) || strings.Contains(text, "secret") {
			t.Errorf("timeline: %d %s", status, text)
		}
	}
	ada := l.visit(web.User{UID: 4001, GID: 4001, Name: "ada"}, false)
	if status, text := ada.ask("POST", "/v1/tasks/5/stop", "{}"); status != 200 {
		t.Errorf("stop her own: %d %s", status, text)
	}
	l.until("5", "cancelled", func(t api.Task) bool { return t.Phase == "cancelled" })
}

// TestPageOtherUser checks that another user of this machine cannot use ada's session, neither
// through the port nor through the socket, even with all cookies and headers of ada's browser.
func TestPageOtherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("left out: it needs root, to be another user")
	}
	l := newLab(t, 1, 0)
	root := web.User{Name: "root"}
	in := l.visit(root, false)
	cookie := in.http.Jar.Cookies(l.url())[0]
	for _, dir := range []string{l.dir, filepath.Dir(l.dir)} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	get := "GET /v1/tasks HTTP/1.1\r\nHost: " + l.port + "\r\nCookie: " + cookie.String() + "\r\nCarma-Key: " + in.key + "\r\nConnection: close\r\n\r\n"
	for _, at := range [][2]string{{"tcp", l.port}, {"unix", l.socket}} {
		if status := askAs(t, 0, at, get); status != 200 {
			t.Errorf("%s: root with its own session: %d", at[0], status)
		}
		if status := askAs(t, 4001, at, get); status != 401 {
			t.Errorf("%s: another user with root's session: %d", at[0], status)
		}
		ticket := l.ticket(root)
		body := `{"ticket":"` + ticket + `"}`
		login := "POST /login HTTP/1.1\r\nHost: " + l.port + "\r\nOrigin: http://" + l.port + "\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\nConnection: close\r\n\r\n" + body
		if status := askAs(t, 4001, at, login); status != 401 {
			t.Errorf("%s: another user with root's ticket, as ps shows it: %d", at[0], status)
		}
		if status := askAs(t, 0, at, login); status != 200 {
			t.Errorf("%s: root with its ticket: %d", at[0], status)
		}
		if status := askAs(t, 4001, at, "GET /v1/tasks HTTP/1.1\r\nHost: "+l.port+"\r\nConnection: close\r\n\r\n"); status != 401 {
			t.Errorf("%s: another user with nothing: %d", at[0], status)
		}
	}
}

// askAs sends a request as a user: a socket belongs to the user that its thread has.
func askAs(t *testing.T, uid int, at [2]string, request string) (status int) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and ends with the goroutine
		unix.RawSyscall(unix.SYS_SETFSUID, uintptr(uid), 0, 0)
		if uid != 0 { // the peer of a unix socket is known by the effective user
			unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0))
		}
		done <- func() error {
			c, err := net.Dial(at[0], at[1])
			if err != nil {
				return err
			}
			defer c.Close()
			if _, err := io.WriteString(c, request); err != nil {
				return err
			}
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err == nil {
				status = resp.StatusCode
				resp.Body.Close()
			}
			return err
		}()
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	return status
}

// TestPageAndAPI checks that the API's socket accepts no sessions, and that the page's socket
// serves the API only with a session.
func TestPageAndAPI(t *testing.T) {
	l := newLab(t, 1, 0)
	v := &visitorOf{t: t, http: &http.Client{}, host: l.port}
	for _, path := range []string{"/v1/tasks", "/v1/info", "/openapi.json", "/healthz", "/session", "/v1/live/events"} {
		if status, text := v.ask("GET", path, ""); status != 401 && status != 404 {
			t.Errorf("%s without a session: %d %s", path, status, text)
		}
	}
	l.page = server.Page{}
	l.restart()
	_, err := l.api.Web(l.ctx())
	if err == nil || !strings.Contains(err.Error(), "web: off") {
		t.Errorf("a daemon without the page: %v", err)
	}
}

// TestLive: the first event has all, later ones have the changes; all viewers get the same,
// and nothing private.
func TestLive(t *testing.T) {
	long(t)
	l := newLab(t, 2, 6)
	states := make(map[int64]string)
	var queue []int64
	wholes := 0
	text := ""
	take := func(e api.Live) {
		if e.Whole {
			wholes++
			clear(states)
		}
		for _, t := range e.Tasks {
			states[t.ID] = t.Phase
		}
		if len(e.Queue) > 0 || e.Emptied {
			queue = e.Queue
		}
		b, _ := json.Marshal(e)
		text += string(b)
	}
	stopped := false
	err := l.api.Live(l.ctx(), func(e api.Live) error {
		take(e)
		if !stopped {
			stopped = true
			if states[4] != "running" || len(queue) != 2 || len(e.GPUs) != 2 || e.Info == nil {
				t.Errorf("at first: %v, queue %v", states, queue)
			}
			_, err := l.api.Stop(l.ctx(), "4", api.StopRequest{Now: true})
			return err
		}
		if states[4] == "cancelled" && len(queue) == 1 {
			return api.ErrStop
		}
		return nil
	})
	again := 0 // a viewer who comes after others have left also gets all first
	errAgain := l.api.Live(l.ctx(), func(e api.Live) error { again = len(e.Tasks); return api.ErrStop })
	if errAgain != nil || again < 6 {
		t.Errorf("the second time: %d tasks, %v", again, errAgain)
	}
	if err != nil || wholes != 1 || states[queue[0]] != "queued" {
		t.Errorf("%v; %d whole events; %v, queue %v", err, wholes, states, queue)
	}
	if strings.Contains(text, "secret") || strings.Contains(text, "onerror") {
		t.Errorf("it has what is private: %s", text)
	}
}

// TestTimeline checks the attempts of a timeline with their GPUs, including tasks that ended
// long ago.
func TestTimeline(t *testing.T) {
	l := newLab(t, 2, 6)
	until := l.Clock.Time()
	line, err := l.api.Timeline(l.ctx(), until.Add(-time.Hour), until.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	runs := map[int64]api.Run{}
	for _, r := range line.Runs {
		runs[r.Task] = r
	}
	if r := runs[2]; r.Outcome != "program" || r.Until.IsZero() || len(r.GPUs) != 1 {
		t.Errorf("the task that failed: %+v", r)
	}
	if r := runs[4]; r.Outcome != "" || !r.Until.IsZero() || r.Grant != int64(38*units.GiB) || r.User != "root" {
		t.Errorf("the task that runs: %+v", r)
	}
	if len(runs) != 7 { // three that ended, four with GPUs
		t.Errorf("%d runs: %+v", len(runs), line.Runs)
	}
	if past, err := l.api.Timeline(l.ctx(), until.Add(-2*time.Hour), until.Add(-time.Hour)); err != nil || len(past.Runs) != 0 {
		t.Errorf("an hour ago: %+v %v", past, err)
	}
	if _, err := l.api.Timeline(l.ctx(), until, until.Add(-time.Hour)); err == nil {
		t.Error("a time that ends before it begins")
	}
	if _, err := l.api.Timeline(l.ctx(), until.Add(-1000*time.Hour), until); err == nil {
		t.Error("a time of a thousand hours")
	}
}
