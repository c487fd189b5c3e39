package mounts

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSeal: a read-only place is read-only with its sub-mounts, also if it is placed again.
// The folder itself stays writable. A place with a name keeps it.
func TestSeal(t *testing.T) {
	w := world(t)
	s := stage(t)
	if err := Sealable(); err != nil {
		t.Skip(err)
	}
	dir := filepath.Join(w, "outside")
	if err := os.Mkdir(dir+"/sub", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", dir+"/sub", "tmpfs", 0, ""); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir+"/sub", unix.MNT_DETACH) })
	source, err := Gate{Allowed: []string{dir}}.Open(User{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	source.Name = "programs"
	for _, source.ReadOnly = range []bool{false, true, true} {
		places, err := s.Place("carma-1", []*Source{source})
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(places[0]) != "programs" {
			t.Errorf("the place is %s", places[0])
		}
		for _, below := range []string{"", "/sub"} {
			file := places[0] + below + "/new"
			if err := os.WriteFile(file, nil, 0o644); errors.Is(err, unix.EROFS) != source.ReadOnly {
				t.Errorf("written below %q, read-only %v: %v", below, source.ReadOnly, err)
			}
			_ = os.Remove(file)
		}
	}
	for _, below := range []string{"", "/sub"} {
		if err := os.WriteFile(dir+below+"/own", nil, 0o644); err != nil {
			t.Error(err)
		}
	}
}
