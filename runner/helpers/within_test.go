package helpers

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"carma/runner/api"
)

// TestWithin: a helper that shares the network of another starts after it, and is recreated
// with it.
func TestWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t)
		s := api.Suite{Keep: true, Helpers: []api.Helper{
			{Name: "exporter", Container: api.Submit{Image: "exporter:1"}, Within: "db"},
			{Name: "db", Container: api.Submit{Image: "db:1"}},
		}}
		did := func(want string) {
			t.Helper()
			time.Sleep(2 * time.Second)
			if got := strings.Join(g.engine.done(), ", "); got != want {
				t.Errorf("did %s, want %s", got, want)
			}
		}
		g.up(ada, "lab", s)
		made := "create db, start db, create exporter, start exporter"
		did(made)
		if h := g.engine.made["carma-i-1000-lab.exporter.1"].spec.Hosted; h.Within != "carma-i-1000-lab.db.1" || len(h.Networks) > 0 {
			t.Errorf("%+v", h)
		}
		g.up(ada, "lab", s) // as it is
		did(made)
		s.Helpers[1].Container.Image = "db:2"
		g.up(ada, "lab", s)
		made += ", halt db, remove db, create db, start db, halt exporter, remove exporter, create exporter, start exporter"
		did(made)
		g.kill()
		delete(g.engine.made, "carma-i-1000-lab.db.1") // somebody removed it
		g.start()
		did(made + ", create db, start db, halt exporter, remove exporter, create exporter, start exporter")
		for name, change := range map[string]func(*api.Helper){
			"and there is no such helper":             func(h *api.Helper) { h.Within = "web" },
			"networks, hosts, ports and hostname are": func(h *api.Helper) { h.Hostname = "x" },
		} {
			wrong := api.Suite{Helpers: append([]api.Helper{}, s.Helpers...)}
			change(&wrong.Helpers[0])
			if err := g.Up(t.Context(), ada, "lab", wrong, nil, true, false); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v", name, err)
			}
		}
		g.kill()
	})
}
