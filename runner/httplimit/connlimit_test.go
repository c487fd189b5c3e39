package httplimit

import (
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"carma/runner/api"
)

// TestDoorkeeper: a user has a limited number of connections. Some places are only for root. A
// closed connection no longer counts (F9).
func TestDoorkeeper(t *testing.T) {
	d := newConnLimiter(nil, MaxConnections, func() int { return 3 }, func(uid int) bool { return uid == 0 })
	d.all, d.forRoot = 10, 2
	for _, uid := range []int{1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4} { // there is room for eight
		d.enter(uid)
	}
	if d.total != 8 {
		t.Errorf("%d connections of users, want 8", d.total)
	}
	if d.open[1] != 3 || d.open[2] != 3 || d.open[4] != 0 {
		t.Errorf("by user: %v", d.open)
	}
	if why := d.enter(0); why != "" {
		t.Errorf("root is not let in: %s", why)
	}
	d.exit(0)
	for uid := range d.open {
		d.exit(uid)
		if why := d.enter(uid); why != "" {
			t.Errorf("a place that is free: %s", why)
		}
		break
	}
	full := newConnLimiter(nil, MaxConnections, func() int { return 1 }, func(uid int) bool { return uid == 0 })
	full.enter(7)
	if why := full.enter(7); !strings.Contains(why, "user-connections") {
		t.Errorf("the refusal: %q", why)
	}
}

// TestRefused: a user with too many connections gets the reason.
func TestRefused(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	d := newConnLimiter(l, MaxConnections, func() int { return 1 }, func(int) bool { return false })
	done := make(chan struct{})
	go func() {
		defer close(done)
		var kept []net.Conn
		for {
			c, err := d.Accept()
			if err != nil {
				break
			}
			kept = append(kept, c)
		}
		for _, c := range kept {
			_ = c.Close()
		}
	}()
	first, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	_, err = api.NewClient(socket).Info(t.Context())
	var status *api.StatusError
	if !errors.As(err, &status) || status.Status != 429 || !strings.Contains(status.Detail, "one user may have 1") {
		t.Errorf("the second connection: %v", err)
	}
	_ = first.Close()
	_ = l.Close()
	<-done
	if d.total != 0 {
		t.Errorf("%d places are taken at the end", d.total)
	}
}
