package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/runner/api"
)

// near is an engine that may or may not see the daemon's files. It checks the mounts when it
// starts a container.
type near struct {
	*containerstest.Fake
	err error
	dir string // folder in which it finds users' mounts

	mu   sync.Mutex
	away bool     // starts get no answer
	saw  []string // at starts
}

func (n *near) SameFiles() error { return n.err }

func (n *near) Start(ctx context.Context, id string) error {
	n.mu.Lock()
	away := n.away
	n.saw = append(n.saw, n.look())
	n.mu.Unlock()
	if away {
		<-ctx.Done()
		return ctx.Err()
	}
	return n.Fake.Start(ctx, id)
}

// look returns the content of the only place.
func (n *near) look() string {
	files, _ := filepath.Glob(filepath.Join(n.dir, "*/*/0/marker"))
	if len(files) != 1 {
		return fmt.Sprint(files)
	}
	b, _ := os.ReadFile(files[0])
	return string(b)
}

// TestMountsAreHeldAgain checks that a daemon that adopts a created but not started container
// makes the places of the user's mounts again, with the folders' present content. After the
// start no place is left.
func TestMountsAreHeldAgain(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can mount for others")
	}
	t.Parallel()
	dir, err := os.MkdirTemp("/run", "carma-mounts-test")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { // but not the files below, because they may belong to the user
		own, _ := filepath.Glob(filepath.Join(dir, "*"))
		for _, d := range append(own, dir) {
			if err := os.Remove(d); err != nil {
				t.Error(err)
			}
		}
	})
	home, err := os.MkdirTemp("/tmp", "carma-home")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	for _, err := range []error{os.Chmod(home, 0o755), os.Mkdir(home+"/data", 0o755), os.WriteFile(home+"/data/marker", []byte("hers"), 0o644), os.Mkdir(dir+"/deadbeef", 0o700)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	n := &near{dir: dir, away: true}
	g := newRig(t, func(g *rig) {
		n.Fake, g.driver = g.engine, n
		g.opt.MountDir, g.opt.AllowedMounts = dir, []string{home}
	})
	g.eventually("the empty folder of another daemon is gone", func() bool {
		_, err := os.Stat(dir + "/deadbeef")
		return errors.Is(err, os.ErrNotExist)
	})
	g.script("read", printing(0))
	s, err := g.admission.Submit(g.ctx(), ann, api.Submit{Image: "read", Mounts: []api.Mount{{Source: home + "/data", Target: "/m"}}})
	if err != nil {
		t.Fatal(err)
	}
	seen := func(want ...string) {
		t.Helper()
		g.eventually("the engine has looked", func() bool { n.mu.Lock(); defer n.mu.Unlock(); return len(n.saw) >= len(want) })
		n.mu.Lock()
		defer n.mu.Unlock()
		for i := range want {
			if n.saw[i] != want[i] {
				t.Errorf("look %d: %q, want %q", i, n.saw[i], want[i])
			}
		}
	}
	seen("hers")
	g.stop()
	n.mu.Lock()
	n.away = false
	n.mu.Unlock()
	if err := os.WriteFile(home+"/data/marker", []byte("hers now"), 0o644); err != nil {
		t.Fatal(err)
	}
	g.start()
	if task := g.finished(fmt.Sprint(s.ID)); task.Phase != "succeeded" {
		t.Errorf("the task is %s: %s", task.Phase, task.Reason)
	}
	seen("hers", "hers now")
	g.eventually("nothing is left for the engine", func() bool { return n.look() == "[]" })
}

// TestCheckMounts checks that doctor reports if mounts cannot be protected, with the fix.
func TestCheckMounts(t *testing.T) {
	for _, c := range []struct {
		err                    error
		dir, allowed           bool
		status, detail, remedy string
	}{
		{nil, true, true, "ok", "is held in ", ""},
		{fmt.Errorf("%w: tcp://elsewhere", containers.ErrRemote), true, true, "warning", "are checked here and not held", "docker-host"},
		{containers.ErrUnavailable, true, true, "ok", "when it answers", ""},
		{errors.New("the container engine does not see the mounts"), true, true, "warning", "users cannot mount folders: the container engine does not see", "mount namespace"},
		{nil, false, true, "warning", "", "run the daemon as root"},
		{nil, false, false, "ok", "", ""},
	} {
		g := newRig(t, func(g *rig) {
			n := &near{err: c.err}
			n.Fake, g.driver = g.engine, n
			if c.dir {
				g.opt.MountDir = g.dir
			}
			if !c.allowed {
				g.opt.AllowedMounts = nil
			}
		})
		if got := g.doctorRow("mounts"); got.Status != c.status || !strings.Contains(got.Detail, c.detail) || (got.Fix == "") != (c.remedy == "") || !strings.Contains(got.Fix, c.remedy) {
			t.Errorf("%v, a folder: %v, allowed: %v: %+v", c.err, c.dir, c.allowed, got)
		}
	}
}
