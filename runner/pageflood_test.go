package runner

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"carma/internal/units"
	"carma/runner/api"
	"carma/runner/httplimit"
	"carma/runner/request"
	"carma/runner/server"
	"carma/test/browser"

	"github.com/chromedp/chromedp"
)

// TestPageFlood checks that a flood of connections to the page's port or socket does not block
// the API's socket, and that a flood to the port does not block the page's socket.
func TestPageFlood(t *testing.T) {
	long(t)
	l := newLab(t, 1, 0)
	var open []net.Conn
	fill := func(network, at string, n int) {
		t.Helper()
		for range n {
			c, err := net.DialTimeout(network, at, 5*time.Second)
			if err != nil {
				break // the system's queue is full as well
			}
			open = append(open, c)
		}
	}
	defer func() {
		for _, c := range open {
			c.Close()
		}
	}()
	fill("tcp", l.port, httplimit.PlacesFor(server.PageConnections, 8)+50)
	time.Sleep(100 * time.Millisecond) // the daemon has accepted its maximum
	if status := visitQuickly(l, "tcp", l.port); status != 0 {
		t.Errorf("the port is not full: it answers %d", status)
	}
	if status := visitQuickly(l, "unix", l.socket); status == 0 {
		t.Error("the page's socket does not answer while its port is full")
	}
	fill("unix", l.socket, httplimit.PlacesFor(server.PageSocketConnections, 8)+50)
	for range 20 { // new connections, without keep-alive
		if _, err := api.NewClient(l.api.Socket()).Info(l.ctx()); err != nil {
			t.Fatalf("the API does not answer while the page is flooded: %v", err)
		}
	}
}

// visitQuickly requests the page's start and returns the status, or 0 if nothing answers
// within a second.
func visitQuickly(l *lab, network, at string) (status int) {
	c, err := net.DialTimeout(network, at, time.Second)
	if err != nil {
		return 0
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", l.port)
	_, _ = fmt.Fscanf(c, "HTTP/1.1 %d", &status)
	return status
}

// TestPageCut checks that, if there are more tasks than a snapshot can contain, the API and the
// page show the number of omitted tasks.
func TestPageCut(t *testing.T) {
	long(t)
	l := newLab(t, 1, 0)
	l.dashboard.SetMost(5)
	for i := range 8 {
		if _, err := l.admission.Submit(l.ctx(), request.Caller{Name: "root", Home: "/tmp"}, api.Submit{Image: "train:1", Name: fmt.Sprintf("many-%d", i), Mem: int64(38 * units.GiB), HostReserve: int64(32 * units.MiB)}); err != nil {
			t.Fatal(err)
		}
	}
	l.until("1", "running", func(t api.Task) bool { return t.Phase == "running" })
	err := l.api.Live(l.ctx(), func(e api.Live) error {
		if e.Info != nil && e.Info.LeftOut == 3 && e.Info.Queued == 6 {
			return api.ErrStop
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b := browser.New(t, "http://"+l.port+"/")
	b.As(360, "dark")
	b.Do(chromedp.Navigate(l.address()))
	for _, hash := range []string{"#/", "#/tasks"} {
		b.Of(`location.hash = '` + hash + `'`)
		b.Await(`document.querySelector('.alarm')?.textContent.startsWith('3 waiting tasks are not shown')`)
		b.Axe("cut " + hash)
	}
	b.Picture("cut-360-dark")
	for _, ref := range []string{"many-5", "many-6", "many-7"} {
		if _, err := l.api.Stop(l.ctx(), ref, api.StopRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	b.Await(`!document.querySelector('.alarm')`)
	if hash := b.Of(`location.hash`); !strings.Contains(hash, "tasks") {
		t.Error(hash)
	}
	b.Well()
}
