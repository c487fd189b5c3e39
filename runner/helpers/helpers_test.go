package helpers

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"carma/containers"
	"carma/runner/api"
)

// TestOrder: a helper starts when the helpers that it waits for have reached their
// condition. Down runs in reverse order, and keeps the volume unless asked to remove it.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t)
		defer g.kill()
		g.up(ada, "lab", lab())
		synctest.Wait()
		if s := g.state(ada, "lab"); s.Phase != starting || s.Reason != "tracker: waiting until helper db is healthy" {
			t.Errorf("%s, %q", s.Phase, s.Reason)
		}
		g.engine.set("db", func(l *containers.Look) { l.Health = containers.HealthGood })
		time.Sleep(time.Second)
		if s := g.state(ada, "lab"); s.Phase != ready || len(s.Helpers) != 2 || s.Helpers[0].State != "running" {
			t.Errorf("%+v", s)
		}
		removed, err := g.Down(t.Context(), ada, "lab", false, 0)
		if err != nil {
			t.Fatal(err)
		}
		want := "create db, start db, create tracker, start tracker, halt tracker, remove tracker, halt db, remove db"
		if got := strings.Join(g.engine.done(), ", "); got != want {
			t.Errorf("did %s", got)
		}
		if got := strings.Join(g.keptOf, ", "); got != "1000/lab lab-tracker-1 of 2, 1000/lab lab-db-1 of 1" {
			t.Errorf("kept the output of %s", got)
		}
		if !slices.Equal(removed.Helpers, []string{"lab-db-1", "lab-tracker-1"}) || g.left() != [3]int{0, 0, 1} {
			t.Errorf("removed %+v; left %v", removed, g.left())
		}
		if len(g.store) != 1 || string(g.store[indexKey]) != "[]" {
			t.Errorf("stored: %q", g.store)
		}
		if removed, err = g.Down(t.Context(), ada, "lab", true, 0); err != nil || !slices.Equal(removed.Volumes, []string{"data"}) || g.left()[2] != 0 {
			t.Errorf("volumes: %+v, %v", removed, err)
		}
	})
}

// TestKilled: a daemon that was killed at any point finds its resources, creates the rest,
// and continues to take down.
func TestKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t)
		g.up(ada, "lab", lab())
		synctest.Wait()
		g.kill()
		g.engine.set("db", func(l *containers.Look) { l.Health = containers.HealthGood })
		g.start()
		time.Sleep(time.Second)
		if s := g.state(ada, "lab"); s.Phase != ready {
			t.Fatalf("%s: %s", s.Phase, s.Reason)
		}
		if got := strings.Join(g.engine.done(), ", "); got != "create db, start db, create tracker, start tracker" {
			t.Errorf("did %s", got)
		}
		g.kill()
		k := g.suites[key{ada.UID, "lab"}].kept // the daemon dies when the order is stored
		k.Down = &down{Volumes: true}
		if err := g.Manager.store(&k); err != nil {
			t.Fatal(err)
		}
		g.start()
		time.Sleep(time.Second)
		if g.left() != [3]int{} || len(g.users(ada.UID)) != 0 {
			t.Errorf("left: %v", g.left())
		}
		g.kill()
	})
}

// TestOrphans: resources of no suite are removed at the start, except volumes.
func TestOrphans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t)
		s := lab()
		s.Helpers[1].Health, s.Helpers[0].Waits, s.Waits = nil, nil, nil
		g.up(ada, "lab", s)
		g.up(bob, "lab", s)
		time.Sleep(time.Second)
		g.kill()
		if err := g.forget(key{bob.UID, "lab"}); err != nil {
			t.Fatal(err)
		}
		g.start()
		time.Sleep(time.Second)
		if g.left() != [3]int{2, 1, 2} {
			t.Errorf("left: %v", g.left())
		}
		g.kill()
	})
}

// TestEndsWithItsTasks: a suite ends with the last of its tasks, unless it is kept.
func TestEndsWithItsTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t)
		defer g.kill()
		s := lab()
		s.Helpers[1].Health, s.Helpers[0].Waits = nil, nil
		g.up(ada, "run", s)
		s.Keep = true
		g.up(ada, "kept", s)
		time.Sleep(3 * time.Second)
		if len(g.users(ada.UID)) != 2 {
			t.Fatal("ended before its tasks")
		}
		g.end("run", "kept")
		time.Sleep(3 * time.Second)
		if all := g.users(ada.UID); len(all) != 1 || all[0].Name != "kept" {
			t.Errorf("%d suites", len(all))
		}
	})
}

// TestFails: a helper that cannot start, or can never reach the condition that another helper
// waits for, fails the suite with its reason.
func TestFails(t *testing.T) {
	for name, tc := range map[string]struct {
		set  func(*rig)
		want string
	}{
		"image":     {func(g *rig) { g.engine.missing["db:1"] = true }, "helper db: image db:1 is not on this machine and cannot be pulled: no registry has db:1"},
		"start":     {func(g *rig) { g.engine.refuse = errors.New("port is already\nallocated") }, "helper db: port is already allocated"},
		"unhealthy": {func(g *rig) { g.engine.set("db", func(l *containers.Look) { l.Health = containers.HealthUnhealthy }) }, "helper tracker: helper db is not healthy; `carma suite logs` shows its output"},
		"ended": {func(g *rig) {
			g.engine.set("db", func(l *containers.Look) { l.State, l.Code = containers.StateExited, 3 })
		}, "helper tracker: helper db has ended with exit code 3; `carma suite logs` shows its output"},
		"no check": {func(g *rig) { g.engine.set("db", func(l *containers.Look) { l.Health = "" }) }, "helper tracker: helper db has no check of its health, so it cannot be waited for; give it a healthcheck, or wait with service_started"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newRig(t)
				defer g.kill()
				if name == "image" || name == "start" {
					tc.set(g)
				}
				g.up(ada, "lab", lab())
				synctest.Wait()
				tc.set(g)
				time.Sleep(time.Second)
				if s := g.state(ada, "lab"); s.Phase != failed || s.Reason != tc.want {
					t.Errorf("%s: %q", s.Phase, s.Reason)
				}
			})
		})
	}
}

// TestAgain: a second up changes what differs and leaves the rest running; resources that
// the suite no longer has are removed.
func TestAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t)
		defer g.kill()
		s := lab()
		s.Helpers[1].Health, s.Helpers[0].Waits = nil, nil
		g.up(ada, "lab", s)
		time.Sleep(time.Second)
		before := len(g.engine.done())
		g.up(ada, "lab", s)
		time.Sleep(time.Second)
		if got := g.engine.done()[before:]; len(got) > 0 {
			t.Errorf("the same again: %v", got)
		}
		s.Helpers = slices.Clone(s.Helpers)
		s.Helpers[1].Container.Env = []string{"A=1"}
		s.Helpers[0] = api.Helper{Name: "board", Container: api.Submit{Image: "board"}}
		s.Waits = nil
		g.up(ada, "lab", s)
		time.Sleep(time.Second)
		got := g.engine.done()[before:]
		slices.Sort(got)
		if strings.Join(got, ", ") != "create board, create db, halt db, halt tracker, remove db, remove tracker, start board, start db" {
			t.Errorf("changed: %v", got)
		}
	})
}

// TestOwners: other users do not see a suite, admins see it, and two users may use the same
// name.
func TestOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t)
		defer g.kill()
		g.limits.Suites, g.limits.Helpers, g.limits.Volumes = 2, 5, 2
		s := lab()
		g.up(ada, "lab", s)
		if _, err := g.State(t.Context(), bob, "lab"); status(err) != 404 {
			t.Errorf("bob sees it: %v", err)
		}
		if _, err := g.Down(t.Context(), bob, "lab", true, 0); status(err) != 404 {
			t.Errorf("bob takes it down: %v", err)
		}
		for _, other := range []struct {
			o    Owner
			part string
		}{{bob, "train"}, {ada, "other"}} {
			if h, files := g.Join(other.o, "lab", other.part, ""); h != nil || files != nil {
				t.Errorf("%s joins as %s: %+v", other.o.Name, other.part, h)
			}
		}
		if h, _ := g.Join(ada, "lab", "train", ""); h == nil || h.Networks[0].Network != "carma-i-1000-lab.net" {
			t.Errorf("%+v", h)
		}
		if o, err := g.Find(bob, "lab", true); err != nil || o != ada {
			t.Errorf("an admin finds %v, %v", o, err)
		}
		if _, err := g.Find(bob, "lab", false); status(err) != 404 {
			t.Errorf("bob finds it: %v", err)
		}
		g.up(bob, "lab", s)
		if _, err := g.Find(Owner{UID: 5}, "lab", true); status(err) != 409 {
			t.Errorf("an admin means both: %v", err)
		}
		g.up(ada, "second", s)
		if err := g.Up(t.Context(), ada, "third", s, nil, false, false); status(err) != 429 {
			t.Errorf("a third suite: %v", err)
		}
		if err := g.Up(t.Context(), ada, "third", s, nil, false, true); err != nil {
			t.Errorf("without limits: %v", err)
		}
		s.Helpers = slices.Clone(s.Helpers)
		s.Helpers[0].Replicas = 9
		if err := g.Up(t.Context(), bob, "lab", s, nil, true, false); status(err) != 429 {
			t.Errorf("ten helpers: %v", err)
		}
	})
}

func status(err error) int {
	var refused *RefusedError
	if errors.As(err, &refused) {
		return refused.Status
	}
	return 0
}
