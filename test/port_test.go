//go:build e2e

package test

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"carma/runner/api"
)

// TestNotebookPort checks that a server in a task, like a notebook's, answers at its port on
// 127.0.0.1, also after the daemon was killed. It answers at no other address of the machine,
// and not after the task has ended.
func TestNotebookPort(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.start()
	notebook := s.submit("--mem", "1G", "-p", "8888", tool, "notebook::8888")
	s.until(notebook, "its server", func(*api.Task) bool { out, _ := s.lines(notebook); return len(out) == 1 })
	at := strings.TrimSpace(s.ok("port", notebook, "8888"))
	host, port, err := net.SplitHostPort(at)
	if err != nil || host != "127.0.0.1" || s.ok("port", notebook) != "8888/tcp -> "+at+"\n" {
		t.Fatalf("its port is %q, %v", at, err)
	}
	ask := func(at string) string {
		c, err := net.DialTimeout("tcp", at, 10*time.Second)
		if err != nil {
			return ""
		}
		defer c.Close()
		text, _ := io.ReadAll(c)
		return string(text)
	}
	if got := ask(at); got != "a notebook\n" {
		t.Errorf("at %s: %q", at, got)
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && ip.IP.To4() != nil {
			if c, err := net.DialTimeout("tcp", net.JoinHostPort(ip.IP.String(), port), time.Second); err == nil {
				_ = c.Close()
				t.Errorf("it is open at %s too", ip.IP)
			}
		}
	}
	s.kill()
	if got := ask(at); got != "a notebook\n" {
		t.Errorf("without a daemon: %q", got)
	}
	s.start()
	if got := strings.TrimSpace(s.ok("port", notebook, "8888")); got != at {
		t.Errorf("after the daemon's restart its port is %s, not %s", got, at)
	}
	s.ok("stop", "--now", notebook)
	if got := ask(at); got != "" {
		t.Errorf("after its end the port answers %q", got)
	}
}
