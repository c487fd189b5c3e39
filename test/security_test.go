//go:build e2e

package test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"carma/runner/mounts"
)

// dialAs connects to the daemon as a user. It changes the user of one thread,
// which ends with its goroutine.
func (a *attacker) dialAs(uid uint32) (c net.Conn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked, so the thread ends
		if _, _, e := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); e != 0 {
			err = e
			return
		}
		c, err = net.DialTimeout("unix", a.socket, 10*time.Second)
	}()
	<-done
	return c, err
}

// client returns an HTTP client that connects to the daemon as a user.
func (a *attacker) client(uid uint32) *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return a.dialAs(uid) }}}
}

// ask makes one request as a user and returns the status and the body.
func (a *attacker) ask(uid uint32, method, path, body string) (int, string) {
	a.t.Helper()
	cli := a.client(uid)
	req, err := http.NewRequestWithContext(a.t.Context(), method, "http://carma"+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := cli.Do(req)
	if err != nil { // the daemon closed the connection
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

// userConnections is the largest number of connections of one user in TestSecurityWalls.
const userConnections = 200

// TestSecurityWalls attacks the isolation between users and prints one line for each attack.
// Other tests attack the mounts.
func TestSecurityWalls(t *testing.T) {
	t.Parallel()
	needRoot(t)
	a := newAttacker(newServer(t, "--user-tasks", "20", "--user-high", "3", "--high-priority", "all", "--user-connections", strconv.Itoa(userConnections)))
	as := func(id uint32, args ...string) result {
		t.Helper()
		return a.begin(&syscall.Credential{Uid: id, Gid: id}, args...).wait()
	}
	ann, bob := a.id, a.other
	submit := func(args ...string) string {
		t.Helper()
		r := as(ann, append([]string{"run", "-d", "--mem", "1G"}, args...)...)
		if r.code != 0 {
			t.Fatal(r)
		}
		return strings.TrimSpace(r.out)
	}
	wall := func(name, attack string, times int, held bool, why ...any) {
		t.Helper()
		if t.Logf("wall %-12s %-58s %6d times  held: %v", name, attack, times, held); !held {
			t.Errorf("%s, %s: %v", name, attack, why)
		}
	}
	refuses := func(name, attack, words string, r result) {
		t.Helper()
		wall(name, attack, 1, r.code == 2 && strings.Contains(r.err, words) && strings.Count(strings.TrimSpace(r.err), "\n") == 0, r)
	}

	private := submit("-e", "WANDB_API_KEY=s3cret", tool, "env:WANDB_API_KEY", "exit:3")
	a.until(private, "its end", ended)
	seen := ""
	for _, args := range [][]string{{"inspect", private}, {"ps", "-a", "--json"}, {"ps", "-a", "--no-trunc"}, {"why", private}, {"wait", private}} {
		r := as(bob, args...)
		seen += r.out + r.err
	}
	_, stream := a.ask(bob, "GET", "/v1/tasks/"+private+"/events", "")
	wall("environment", "inspect, ps, why, wait and events of another's task", 6, !strings.Contains(seen+stream, "s3cret") && strings.Contains(seen, "WANDB_API_KEY=***"), seen, stream)
	wall("environment", "its owner sees it", 1, strings.Contains(as(ann, "inspect", private).out, "WANDB_API_KEY=s3cret"))
	refuses("output", "logs of another's task", "private", as(bob, "logs", private))
	open := submit("--visibility", "open", tool, "out:for all")
	a.until(open, "its end", ended)
	wall("output", "logs of a task that is open", 1, as(bob, "logs", open).out == "for all\n")

	runs := submit(tool, "block:0")
	a.running(runs)
	refuses("tasks", "stop another's", "belongs to", as(bob, "stop", runs))
	refuses("tasks", "rm another's", "belongs to", as(bob, "rm", "-f", runs))
	refuses("mounts", "the host's /etc", "you may mount only below", as(bob, "run", "-d", "-v", "/etc:/m", tool))
	for _, path := range []string{"/proc/self/root", "/proc/self/fd/0", "/proc/1/cwd", "/dev/fd/0"} {
		r := as(bob, "run", "-d", "-v", path+":/m", tool)
		wall("mounts", path, 1, r.code == 2 && strings.Contains(r.err, "-v "+path), r)
	}
	refuses("mounts", "the data folder", "you may mount only below", as(bob, "run", "-d", "-v", a.dir+":/m", tool))
	for name, dir := range map[string]string{"the journal's folder": a.dir, "the folder the engine mounts from": mounts.DefaultDir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(dir)
		wall("files", name+" is root's alone", 1, err == nil && info.Mode().Perm()&0o077 == 0, err)
	}
	_, err := os.Stat(filepath.Join(a.dir, "journal.db"))
	wall("files", "read the journal", 1, as(bob, "history", "verify", "--data-dir", a.dir).code != 0, err)

	code, text := a.ask(bob, "PUT", "/v1/speed", `{"speed": 1000}`)
	wall("admin", "set the speed", 1, code == 403, text)
	code, text = a.ask(bob, "POST", "/v1/prove", `{"image": "`+image+`"}`)
	wall("admin", "start proof containers", 1, code == 403, text)
	code, text = a.ask(bob, "POST", "/v1/tasks", `{"image": "`+tool+`", "user": "0:0"}`)
	wall("identity", "run as root", 1, code == 403, text)
	code, text = a.ask(bob, "POST", "/v1/tasks", `{"image": "`+tool+`", "env": ["A=\u0000"]}`)
	wall("requests", "NUL in the environment", 1, code == 422 && strings.Contains(text, "NUL"), text)
	code, text = a.ask(bob, "POST", "/v1/submissions", `{"tasks": [{"image": "`+strings.Repeat("x", 17<<20)+`"}]}`)
	wall("requests", "17 MiB in one submission", 1, code == 413 || code == 0, code, text)
	code, text = a.ask(bob, "POST", "/v1/submissions", `{"tasks": [{"image": "x", "a": 1, "b": 1, "c": 1, "workdir": "`+strings.Repeat("x", 12<<20)+`"}]}`)
	wall("requests", "an answer that quotes 12 MiB three times", 1, code == 422 && len(text) < 16<<10, code, len(text))
	code, text = a.ask(ann, "POST", "/v1/tasks/"+runs+"/stop", `{"reason": "`+strings.Repeat("x", 1000)+`"}`)
	wall("requests", "a reason of 1,000 letters for every listing", 1, code == 422, code, text)
	a.slow(wall)
	code, text = a.ask(bob, "GET", "/v1/tasks?limit=100000", "")
	wall("requests", "a page of 100,000 tasks", 1, code == 422, text)

	refuses("machine", "--shm-size 100T", "--shm-size", as(bob, "run", "-d", "--shm-size", "100T", tool))
	refuses("machine", "--pids 99999999", "--pids", as(bob, "run", "-d", "--pids", "99999999", tool))
	refuses("machine", "--cpus 4096", "--cpus", as(bob, "run", "-d", "--cpus", "4096", tool))
	bomb := submit("--pids", "64", tool, "fork:10000")
	hog := submit("--host-mem", "64M", tool, "hog:2000")
	forked, hogged := a.until(bomb, "its end", ended), a.until(hog, "its end", ended)
	out, _ := a.lines(bomb)
	n := 0
	_, _ = fmt.Sscanf(strings.Join(out, " "), "forked %d", &n)
	wall("machine", "a fork bomb", 10000, forked.Phase == "failed" || n < 64, out)
	wall("machine", "a task that takes 2 GB of host memory in 64 MiB", 1, hogged.Phase == "failed" && hogged.Attempts[0].Outcome == "host-oom", hogged.Phase, hogged.Attempts[0].Outcome, hogged.Reason)
	after := submit(tool, "out:well")
	wall("machine", "another task runs", 1, a.until(after, "its end", ended).Phase == "succeeded")

	refuses("queue", "more tasks than user-tasks", "user-tasks", as(bob, "run", "-d", "--array", "1-21", "--delay", "1h", tool))
	refuses("queue", "more of priority high than user-high", "user-high", as(bob, "run", "-d", "--array", "1-4", "--delay", "1h", "--priority", "high", tool))
	a.crowded(wall)
}

// slow sends large requests as bob that never arrive completely, and checks that
// another user's large request is answered.
func (a *attacker) slow(wall func(name, attack string, times int, held bool, why ...any)) {
	a.t.Helper()
	const times = 60
	var held []net.Conn
	for range times {
		c, err := a.dialAs(a.other)
		if err != nil {
			a.t.Fatal(err)
		}
		_, _ = io.WriteString(c, "POST /v1/submissions HTTP/1.1\r\nHost: c\r\nContent-Length: 9000000\r\n\r\n{\"tasks\": [")
		held = append(held, c)
	}
	code, text := a.ask(a.id, "POST", "/v1/submissions", `{"tasks": [{"image": "`+tool+`", "env": ["A=`+strings.Repeat("x", 100<<10)+`"], "delay": 3600000000000000}]}`)
	wall("requests", "large bodies that never arrive; another's is taken", times, code == 200, code, text)
	for _, c := range held {
		_ = c.Close()
	}
}

// crowded makes as many connections as it can as bob, and checks that others are
// still served.
func (a *attacker) crowded(wall func(name, attack string, times int, held bool, why ...any)) {
	a.t.Helper()
	tries := 1000
	if full() {
		tries = 20_000
	}
	crowd := gather(a.t, a.socket, a.other, tries)
	code, text := a.ask(a.id, "GET", "/v1/info", "")
	wall("connections", "idle ones of one user; another is served", crowd.made, code == 200 && crowd.made == tries, code, text)
	eventually(a.t, "the others are turned away", func() bool { return crowd.open() <= userConnections })
	r := a.carma("ps")
	wall("connections", "and so is root", 1, r.code == 0, r)
	now, most := a.resident()
	wall("connections", fmt.Sprintf("the daemon has %d MB, at most %d so far", now, most), 1, most <= memoryBound)
	crowd.leave()
}
