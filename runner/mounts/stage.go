package mounts

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// DefaultDir is the folder in which daemons of root place the mounts of users. It is in
// no folder that programs clear, because the users' own files are below it.
const DefaultDir = "/run/carma-mounts"

// Stage mounts opened sources at places for the engine, below a folder that only root can
// enter. The engine must see the same file systems. Its methods may be called
// concurrently for different names.
type Stage struct {
	// Dir is the folder of one daemon.
	Dir string
}

// Place binds sources to fixed places, one folder for each name, and returns their paths.
// Sub-mounts are included. It may be repeated: a place that shows the same object is left
// alone. If a place shows another object, the new one is mounted over it, so that the
// place is never empty. An engine that is starting the container for an earlier daemon
// then finds one object or the other.
func (s *Stage) Place(name string, sources []*Source) ([]string, error) {
	dir := filepath.Join(s.Dir, name)
	err := os.MkdirAll(dir, 0o700)
	for tries := 0; errors.Is(err, os.ErrNotExist) && tries < 10; tries++ { // another daemon has removed the folder
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return nil, err
	}
	var places []string
	for i, source := range sources {
		place := filepath.Join(dir, cmp.Or(source.Name, strconv.Itoa(i)))
		if err := source.bind(place); err != nil {
			return nil, fmt.Errorf("show %s to the engine: %w", source.Path, err)
		}
		places = append(places, place)
	}
	return places, nil
}

func (s *Source) bind(place string) error {
	if err := s.makeRoom(place); err != nil {
		return err
	}
	same, err := s.shownAt(place)
	if err != nil {
		return err
	}
	if !same {
		if err := s.show(place); err != nil {
			return err
		}
		if err := apart(place); err != nil {
			return err
		}
	}
	if !s.ReadOnly {
		return nil
	}
	return seal(place)
}

// show mounts the source at a place. Root has no rights in a writable folder, where the
// kernel supports that.
func (s *Source) show(place string) error {
	if s.dir && !s.ReadOnly {
		if err := s.bindWithoutRoot(place); !errors.Is(err, ErrNoGuard) || s.Guarded {
			return err
		}
	}
	object := "/proc/self/fd/" + strconv.Itoa(int(s.file.Fd()))
	return unix.Mount(object, place, "", unix.MS_BIND|unix.MS_REC, "")
}

// seal makes a place read-only with all its sub-mounts. An engine's own read-only option
// covers only the topmost mount. seal affects only this place, which apart has separated
// from the mounts it was made of.
func seal(place string) error {
	err := unix.MountSetattr(unix.AT_FDCWD, place, unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	if errors.Is(err, unix.ENOSYS) {
		return ErrNoSeal
	}
	return err
}

// Sealable returns nil if the kernel can make a folder read-only including all mounts in
// it.
func Sealable() error {
	err := unix.MountSetattr(-1, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
	if errors.Is(err, unix.ENOSYS) {
		return ErrNoSeal
	}
	return nil
}

// ErrNoSeal means that the kernel cannot make a folder read-only including all mounts in
// it.
var ErrNoSeal = errors.New("this kernel is older than Linux 5.12: folders of the machine cannot be shown read-only")

// makeRoom makes the file or folder to mount on. An object of the other kind comes from
// an earlier attempt to start this container, and is removed.
func (s *Source) makeRoom(place string) error {
	if info, err := os.Stat(place); err == nil && info.IsDir() != s.dir {
		if err := clear(place); err != nil {
			return err
		}
	}
	if s.dir {
		err := os.Mkdir(place, 0o700)
		if errors.Is(err, os.ErrExist) {
			err = nil
		}
		return err
	}
	err := unix.Mknod(place, unix.S_IFREG|0o600, 0)
	if errors.Is(err, os.ErrExist) {
		err = nil
	}
	return err
}

// shownAt reports whether a place shows the source already.
func (s *Source) shownAt(place string) (bool, error) {
	var here, there unix.Statx_t
	const ask = unix.STATX_INO | unix.STATX_TYPE
	if err := unix.Statx(int(s.file.Fd()), "", unix.AT_EMPTY_PATH, ask, &here); err != nil {
		return false, err
	}
	if err := unix.Statx(unix.AT_FDCWD, place, unix.AT_SYMLINK_NOFOLLOW, ask, &there); err != nil {
		return false, err
	}
	return here.Ino == there.Ino && here.Dev_major == there.Dev_major && here.Dev_minor == there.Dev_minor, nil
}

// apart separates a place from the mounts it was made of, so that unmounting the place
// does not unmount these mounts.
func apart(place string) error {
	return unix.Mount("", place, "", unix.MS_REC|unix.MS_PRIVATE, "")
}

// Clear removes the places of a name. A container that has started has mounts
// of its own and keeps them. A name without places is no error.
func (s *Stage) Clear(name string) error {
	dir := filepath.Join(s.Dir, name)
	places, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, p := range places {
		if err := clear(filepath.Join(dir, p.Name())); err != nil {
			return err
		}
	}
	return os.Remove(dir)
}

// clear unmounts everything that is mounted on a place, and removes the place. It never
// removes the content of a folder, even if the folder is still mounted.
func clear(place string) error {
	for {
		if err := apart(place); errors.Is(err, unix.EINVAL) {
			break // nothing is mounted there any more
		} else if err != nil {
			return &os.PathError{Op: "unmount", Path: place, Err: err}
		}
		if err := unix.Unmount(place, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			return &os.PathError{Op: "unmount", Path: place, Err: err}
		}
	}
	if err := unix.Rmdir(place); !errors.Is(err, unix.ENOTDIR) {
		return err
	}
	return unix.Unlink(place)
}

// Sweep removes the places of an earlier daemon, except names to keep.
func (s *Stage) Sweep(keep func(name string) bool) error {
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

// SweepEmpty removes the empty folders of other daemons beside this one's. These folders
// have no use, and a running daemon makes its own folder again. SweepEmpty unmounts
// nothing, and removes nothing in the folders.
func (s *Stage) SweepEmpty() {
	all := filepath.Dir(s.Dir)
	names, err := os.ReadDir(all)
	if err != nil {
		return // there is no such folder
	}
	for _, n := range names {
		if path := filepath.Join(all, n.Name()); path != s.Dir {
			_ = unix.Rmdir(path) // the kernel refuses this if the folder has content, or a mount on it
		}
	}
}
