package runner

import (
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/record"
	"carma/runner/request"
)

// TestDoorkeeper: a user has a limited number of connections. Some places are only for root. A
// closed connection no longer counts (F9).
func TestDoorkeeper(t *testing.T) {
	d := newConnLimiter(nil, maxConnections, func() int { return 3 }, func(uid int) bool { return uid == 0 })
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
	full := newConnLimiter(nil, maxConnections, func() int { return 1 }, func(uid int) bool { return uid == 0 })
	full.enter(7)
	if why := full.enter(7); !strings.Contains(why, "user-connections") {
		t.Errorf("the refusal: %q", why)
	}
}

// TestTurnedAway: a user with too many connections gets the reason.
func TestTurnedAway(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	d := newConnLimiter(l, maxConnections, func() int { return 1 }, func(int) bool { return false })
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

// TestPages checks that a listing is split into pages with a maximum of tasks and bytes, and
// that the client requests all pages (F12, F13).
func TestPages(t *testing.T) {
	long(t)
	g := newRig(t)
	g.script("ok", printing(0))
	const n = 2300
	for done := 0; done < n; done += 100 {
		s := api.Submission{}
		for range 100 {
			s.Tasks = append(s.Tasks, api.Submit{Image: "ok", Mem: int64(units.GiB), Delay: 1 << 50, Labels: map[string]string{"n": "x"}})
		}
		if _, err := g.SubmitAll(g.ctx(), request.Caller{Name: "root"}, s); err != nil {
			t.Fatal(err)
		}
	}
	for o, want := range map[api.ListOptions]int{
		{}: n, {All: true}: n, {Limit: 1}: 1, {Limit: 1500}: 1500, {Label: "n=x"}: n, {Before: 11}: 10, {User: "nobody"}: 0,
	} {
		list, err := g.api.Tasks(g.ctx(), o)
		if err != nil || len(list) != want {
			t.Errorf("%+v: %d tasks (%v), want %d", o, len(list), err, want)
		}
		for i := 1; i < len(list); i++ {
			if list[i].ID >= list[i-1].ID {
				t.Fatalf("%+v: task %d after %d", o, list[i].ID, list[i-1].ID)
			}
		}
	}
	some, err := g.Tasks(g.ctx(), api.ListOptions{Limit: 100_000})
	if err != nil || len(some) != pageTasks {
		t.Errorf("one page has %d tasks (%v)", len(some), err)
	}
	wide := make([]*record.Record, 10)
	for i := range wide {
		wide[i] = &record.Record{Submit: api.Submit{Command: []string{strings.Repeat("x", pageBytes/3)}}}
		wide[i].Task.ID = model.TaskID(10 - i)
	}
	if part, next := page(wide, 10); len(part) != 2 || next != 9 {
		t.Errorf("a page of %d wide tasks, next %d", len(part), next)
	}
}
