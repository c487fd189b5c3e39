package helpers

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"carma/runner/api"
)

// ledger is a machine with an amount of memory; allocations stay over restarts.
type ledger struct {
	most, taken int64 // by tasks
	of          map[string]Share
	followed    []string
}

func (g *rig) Reserved(s *api.Submit) Share { return Share{HostMem: max(s.HostReserve, 1)} }

func (g *rig) Book(_ context.Context, suite string, s Share, how How) error {
	g.endedMu.Lock()
	defer g.endedMu.Unlock()
	sum := s.HostMem + g.books.taken
	for name, other := range g.books.of {
		if name != suite {
			sum += other.HostMem
		}
	}
	switch {
	case how != Must && s.HostMem > g.books.most:
		return errors.New("never")
	case how == Look:
		return nil
	case how == Ask && sum > g.books.most:
		return &FullError{Text: "it is full"}
	case s == Share{}:
		delete(g.books.of, suite)
	default:
		g.books.of[suite] = s
	}
	return nil
}

func (g *rig) Follow(suite, container, _ string) {
	g.endedMu.Lock()
	defer g.endedMu.Unlock()
	g.books.followed = append(g.books.followed, suite+" "+container)
}

func (g *rig) Forget(string) {}

// TestBooks: a suite starts when the machine has room for its helpers, and otherwise shows the
// reason for waiting. Its allocation is released when the suite is removed.
func TestBooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t)
		defer g.kill()
		synctest.Wait() // the manager runs
		s := lab()
		s.Helpers[1].Health, s.Helpers[0].Waits, s.Waits = nil, nil, nil
		s.Helpers[0].Container.HostReserve, s.Helpers[0].Replicas = 300, 2
		g.books.taken = 500
		g.up(ada, "lab", s)
		time.Sleep(3 * time.Second)
		if state := g.state(ada, "lab"); state.Phase != starting || state.Reason != "waiting for the machine: it is full" || g.left()[0] != 0 {
			t.Errorf("%s, %q; left %v", state.Phase, state.Reason, g.left())
		}
		g.endedMu.Lock()
		g.books.taken = 0
		g.endedMu.Unlock()
		time.Sleep(3 * time.Second)
		if state := g.state(ada, "lab"); state.Phase != ready || g.books.of["1000/lab"] != (Share{HostMem: 601}) {
			t.Errorf("%s, %q; booked %v", state.Phase, state.Reason, g.books.of)
		}
		if len(g.books.followed) != 3 || !strings.HasPrefix(g.books.followed[0], "1000/lab carma-i-1000-lab.") {
			t.Errorf("followed %q", g.books.followed)
		}
		if _, err := g.Down(t.Context(), ada, "lab", false, 0); err != nil || len(g.books.of) > 0 {
			t.Errorf("%v; still booked: %v", err, g.books.of)
		}
		s.Helpers[0].Container.HostReserve = 2000
		if err := g.Up(t.Context(), ada, "lab", s, nil, true, false); err == nil || err.Error() != "never" {
			t.Errorf("what can never be: %v", err)
		}
	})
}

// TestBooksAfterRestart: running helpers keep their allocation on a full machine, and that the
// allocation of a removed suite is released.
func TestBooksAfterRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t)
		s := lab()
		s.Helpers[1].Health, s.Helpers[0].Waits, s.Waits = nil, nil, nil
		g.up(ada, "lab", s)
		time.Sleep(time.Second)
		g.kill()
		g.books.taken = 1000
		g.books.of = map[string]Share{"7/gone": {HostMem: 5}} // an older daemon allocated nothing
		g.start()
		time.Sleep(time.Second)
		if state := g.state(ada, "lab"); state.Phase != ready || len(g.books.of) != 1 || g.books.of["1000/lab"].HostMem != 2 {
			t.Errorf("%s, %q; booked %v", state.Phase, state.Reason, g.books.of)
		}
		g.kill()
	})
}
