package mounts

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// File is a file that carma mounts into a container.
type File struct {
	Content  []byte
	UID, GID int
	Mode     uint32 // permission bits
	// Kept keeps a file that is there already, because its container may write to it.
	Kept bool
}

// Files stores the files of containers below a folder that only the daemon's user can
// enter. Its methods may be called concurrently for different names.
type Files struct {
	// Dir is the folder of one daemon. Nothing is mounted in it.
	Dir string
}

// Write writes the files of a container and returns their paths. The container gets
// each file by a mount of its path, so neither the engine nor the daemon writes into
// a folder that the container sees. Write may be repeated.
func (s Files) Write(name string, files []File) (paths []string, err error) {
	dir := filepath.Join(s.Dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	for i := range files {
		path := filepath.Join(dir, strconv.Itoa(i))
		if err := files[i].write(path); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// Clear removes the files of a container. A started container keeps its mounts. It is no
// error if there are no files.
func (s Files) Clear(name string) error { return os.RemoveAll(filepath.Join(s.Dir, name)) }

// Sweep removes the files of an earlier daemon, except names to keep.
func (s Files) Sweep(keep func(name string) bool) error {
	names, err := os.ReadDir(s.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, n := range names {
		if !keep(n.Name()) {
			err = errors.Join(err, s.Clear(n.Name()))
		}
	}
	return err
}

// write makes a file with its owner and mode before it gets its name, so that a container
// never sees an incomplete file.
func (f *File) write(path string) error {
	if f.there(path) {
		return nil
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // after the rename this file does not exist
	defer file.Close()
	if err := f.own(file); err != nil {
		return err
	}
	if _, err := file.Write(f.Content); err != nil {
		return err
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// own sets the owner and mode of a new file. Only root can change the owner. Without
// root, a file that everybody may read keeps the daemon's user as its owner.
func (f *File) own(file *os.File) error {
	err := file.Chown(f.UID, f.GID)
	if errors.Is(err, unix.EPERM) && f.Mode&0o004 == 0 {
		return fmt.Errorf("%w: this daemon does not run as root, so it cannot give a file of mode %04o to user %d", ErrOwner, f.Mode, f.UID)
	}
	if err != nil && !errors.Is(err, unix.EPERM) {
		return err
	}
	return file.Chmod(fs.FileMode(f.Mode) & fs.ModePerm)
}

// ErrOwner means that the daemon may not give a file to its owner.
var ErrOwner = errors.New("a file cannot have this owner")

// there reports whether the file already exists.
func (f *File) there(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	if f.Kept {
		return true
	}
	if info.Size() != int64(len(f.Content)) || info.Mode().Perm() != fs.FileMode(f.Mode)&fs.ModePerm {
		return false
	}
	content, err := os.ReadFile(path)
	return err == nil && bytes.Equal(content, f.Content)
}
