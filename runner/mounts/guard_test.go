package mounts

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWithoutRoot: at the place of a folder root can create nothing, also through a
// link. The user has the same rights as in the folder, and makes files that are the user's there too. A folder that is shown
// read-only keeps its owners.
func TestWithoutRoot(t *testing.T) {
	w := world(t)
	s := stage(t)
	who := ann
	who.Home = filepath.Join(w, "home/ann")
	for _, err := range []error{
		os.WriteFile(w+"/outside/roots", []byte("root"), 0o600), os.Symlink("../outside", w+"/scratch/out"),
		os.Mkdir(w+"/group", 0o700), os.Chmod(w+"/group", 0o770), os.Chown(w+"/group", 0, ann.GID),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	place := func(name, path string, readOnly bool) string {
		t.Helper()
		source, err := Gate{Allowed: []string{w}}.Open(User{}, path)
		if err != nil {
			t.Fatal(err)
		}
		defer source.Close()
		source.Name, source.ReadOnly, source.Guarded = name, readOnly, true
		places, err := s.Place("carma-1", []*Source{source})
		if errors.Is(err, ErrNoGuard) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		return places[0]
	}
	all := place("all", w, false)
	for _, path := range []string{"outside/new", "scratch/new", "scratch/out/new", "home/ann/data/new"} {
		if err := os.Mkdir(filepath.Join(all, path), 0o755); !errors.Is(err, unix.EOVERFLOW) && !errors.Is(err, unix.EACCES) {
			t.Errorf("root makes %s: %v", path, err)
		}
	}
	inside, err := os.OpenRoot(all) // the place itself is root's alone
	if err != nil {
		t.Fatal(err)
	}
	defer inside.Close()
	for path, may := range map[string]bool{"home/ann/data/new": true, "scratch/new": true, "group/new": true, "outside/new": false, "outside/roots": false, "home/bob/new": false} {
		err := who.do(func() error { return inside.WriteFile(path, []byte("hers"), 0o600) })
		if (err == nil) != may {
			t.Errorf("the user writes %s: %v", path, err)
		}
	}
	if err := who.do(func() error { _, err := inside.ReadFile("outside/marker"); return err }); err != nil {
		t.Errorf("the user reads a file of all: %v", err)
	}
	var st unix.Stat_t
	if err := unix.Stat(w+"/home/ann/data/new", &st); err != nil || int(st.Uid) != ann.UID || int(st.Gid) != ann.GID {
		t.Errorf("the user's new file is %d:%d's, %v", st.Uid, st.Gid, err)
	}
	read := place("read", w+"/outside", true)
	if err := unix.Stat(read+"/marker", &st); err != nil || st.Uid != 0 {
		t.Errorf("read-only: the owner is %d, %v", st.Uid, err)
	}
}
