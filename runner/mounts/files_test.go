package mounts

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestWrite: the files of a container have their owner and mode, and nobody else can enter
// their folder. A second call changes only what differs, and never a file that the
// container may write to. Clear removes all files of a name, Sweep the files of other
// names.
func TestWrite(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	s := Files{Dir: filepath.Join(t.TempDir(), "files")}
	files := []File{
		{Content: []byte("secret"), UID: ann.UID, GID: ann.GID, Mode: 0o400},
		{Content: []byte("config"), Mode: 0o444},
		{Content: []byte("own"), UID: bob.UID, GID: bob.GID, Mode: 0o644, Kept: true},
	}
	paths, err := s.Write("carma-1", files)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range files {
		info, err := os.Stat(paths[i])
		if err != nil {
			t.Fatal(err)
		}
		owner := info.Sys().(*syscall.Stat_t)
		if read(t, paths[i]) != string(f.Content) || info.Mode() != os.FileMode(f.Mode) || int(owner.Uid) != f.UID || int(owner.Gid) != f.GID {
			t.Errorf("file %d: %v of %d:%d", i, info.Mode(), owner.Uid, owner.Gid)
		}
	}
	for _, dir := range []string{s.Dir, filepath.Dir(paths[0])} {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", dir, info, err)
		}
	}
	if err := bob.do(func() error { _, err := os.ReadFile(paths[1]); return err }); !errors.Is(err, os.ErrPermission) {
		t.Errorf("another user reads a config: %v", err)
	}

	before, _ := os.Stat(paths[0])
	for _, err := range []error{os.WriteFile(paths[1], []byte("cut"), 0o444), os.WriteFile(paths[2], []byte("changed"), 0o644)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Write("carma-1", files); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(paths[0]); err != nil || !os.SameFile(before, after) {
		t.Errorf("an equal file was replaced: %v", err)
	}
	if got := read(t, paths[1]) + " " + read(t, paths[2]); got != "config changed" {
		t.Errorf("written again: %q", got)
	}
	if names, err := os.ReadDir(filepath.Dir(paths[0])); err != nil || len(names) != len(files) {
		t.Errorf("in the folder: %v, %v", names, err)
	}

	if _, err := s.Write("carma-2", files); err != nil {
		t.Fatal(err)
	}
	if err := s.Sweep(func(name string) bool { return name == "carma-2" }); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(paths[0])); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("swept: %v", err)
	}
	if err := s.Clear("carma-2"); err != nil {
		t.Error(err)
	}
	if names, err := os.ReadDir(s.Dir); err != nil || len(names) != 0 {
		t.Errorf("left: %v, %v", names, err)
	}
}
