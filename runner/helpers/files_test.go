package helpers

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"carma/containers"
	"carma/runner/api"
)

// TestFilesBesideMounts: a file with a path that collides with a mount is refused, for
// every spelling of the path and every user.
func TestFilesBesideMounts(t *testing.T) {
	g := newRig(t)
	defer g.kill()
	for path, want := range map[string]string{
		"/m":                   "file /m: its path meets the mount at /m",
		"/m/x":                 "its path meets the mount at /m",
		"//m///x":              "its path meets the mount at /m",
		"/m/../m/x":            "its path meets the mount at /m",
		"/cfg/../m/./x/":       "its path meets the mount at /m",
		"/data/deep/x":         "its path meets the mount at /data",
		"/a":                   "its path meets the mount at /a/file",
		"/a/file/x":            "its path meets the mount at /a/file",
		"/mine/x":              "",
		"/m2":                  "",
		"/tmp/sub/x":           "",
		"/tmp":                 "file /tmp: /tmp is a tmpfs there",
		"/proc/self/x":         "/proc is the kernel's",
		"/dev/x":               "/dev is the kernel's",
		"/run/secrets/../../x": "",
		"/twice":               "two secrets, configs or files have this path",
		"/twice/x":             "/twice is a file too",
		"x":                    "not the absolute path of a file",
		"/m/..":                "not the absolute path of a file",
	} {
		s := lab()
		h := &s.Helpers[1]
		h.Container.Mounts = []api.Mount{{Source: "/home/ada/data", Target: "/m/"}, {Source: "/home/ada/file", Target: "/a/b/../file"}}
		h.Tmpfs = []string{"/tmp:size=1m"}
		h.Files = []api.SuiteFile{{Path: "/twice"}, {Path: path}}
		for _, o := range []Owner{ada, {Name: "root"}} {
			err := g.Up(t.Context(), o, "lab", s, nil, true, true)
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || status(err) != 422) {
				t.Errorf("%s of %s: %v, want %s", path, o.Name, err, want)
			}
		}
	}
}

// TestFilesGiven: a helper's files are written before its container is created, for the
// user that it runs as, and mounted read-only unless they are its own copies. An engine
// that cannot show files refuses them at once.
func TestFilesGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRig(t)
		defer g.kill()
		s := lab()
		db := &s.Helpers[1]
		db.Container.User = "70:71"
		db.Files = []api.SuiteFile{{Path: "/run/secrets/key", UID: -1, GID: -1, Mode: 0o400}, {Path: "/etc/db.conf", UID: 5, GID: -1, Mode: 0o644, Writable: true}}
		if err := g.Up(t.Context(), ada, "lab", s, nil, false, true); err != nil {
			t.Fatal(err)
		}
		name := "carma-i-1000-lab.db.1"
		synctest.Wait()
		want := []containers.Mount{{Source: "/data/run/secrets/key", Target: "/run/secrets/key", ReadOnly: true}, {Source: "/data/etc/db.conf", Target: "/etc/db.conf"}}
		if got := g.engine.made[name].spec.Mounts; !slices.Equal(got, want) {
			t.Errorf("mounts %v", got)
		}
		if f := g.given[name]; f[0].UID != 70 || f[0].GID != 71 || f[1].UID != 5 || f[1].GID != 71 || db.Files[0].UID != -1 {
			t.Errorf("given %+v", f)
		}
		g.Shown = func() error { return errors.New("the engine is far away") }
		if err := g.Up(t.Context(), ada, "lab", s, nil, true, true); err == nil || err.Error() != "secrets and configs: the engine is far away" || status(err) != 422 {
			t.Errorf("an engine that is far away: %v", err)
		}
	})
}

// TestFilesOfTasks: an engine without networks and volumes accepts a suite that has only
// files beside its tasks, and no other. The tasks keep their network.
func TestFilesOfTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRigWith(t, func(d *Deps) { d.Host, d.Why = nil, errors.New("it has no networks") })
		defer g.kill()
		place := []api.NetworkPlace{{Network: "default", Aliases: []string{"train"}}}
		s := api.Suite{
			Networks: []api.SuiteNetwork{{Name: "default"}},
			Tasks:    map[string]api.Joined{"train": {Networks: place, Files: []api.SuiteFile{{Path: "/run/secrets/key", UID: -1, GID: -1}}}},
		}
		if err := g.Up(t.Context(), ada, "lab", s, nil, false, true); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if st := g.state(ada, "lab"); st.Phase != ready {
			t.Errorf("the suite is %s: %s", st.Phase, st.Reason)
		}
		if hosted, files := g.Join(ada, "lab", "train", "1000:100"); hosted != nil || len(files) != 1 || files[0].UID != 1000 || files[0].GID != 100 {
			t.Errorf("joined %v, %v", hosted, files)
		}
		if _, err := g.Down(t.Context(), ada, "lab", false, 0); err != nil {
			t.Error(err)
		}
		for name, change := range map[string]func(*api.Suite){
			"a volume":       func(s *api.Suite) { s.Volumes = []api.SuiteVolume{{Name: "v"}} },
			"a network":      func(s *api.Suite) { s.Networks = append(s.Networks, api.SuiteNetwork{Name: "front"}) },
			"an inner one":   func(s *api.Suite) { s.Networks = []api.SuiteNetwork{{Name: "default", Internal: true}} },
			"a helper":       func(s *api.Suite) { s.Helpers = lab().Helpers[1:] },
			"another's name": func(s *api.Suite) { s.Tasks = map[string]api.Joined{"train": {Hosts: []string{"a:1.2.3.4"}}} },
		} {
			other := s
			change(&other)
			if err := g.Up(t.Context(), ada, "other", other, nil, true, true); err == nil || !strings.Contains(err.Error(), "it has no networks") {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
