package mounts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Gate lists the folders below which users may mount. Allowed contains absolute paths,
// and ~ or paths below ~ for a user's home. An absolute path may be a link. A link below
// ~ counts only if its target is in that home, because the user controls it.
type Gate struct{ Allowed []string }

// OutsideError means that the source exists but lies in no allowed folder.
type OutsideError struct {
	Path    string // as requested
	Allowed []string
}

func (e *OutsideError) Error() string {
	return fmt.Sprintf("you may mount only below %s (allowed-mounts in the daemon's configuration)", strings.Join(e.Allowed, ", "))
}

// Source is an open file or folder that may be mounted. The caller must close it.
type Source struct {
	// Path is the path of the source when it was opened.
	Path string
	// ReadOnly makes the source's place read-only, sub-mounts included.
	ReadOnly bool
	// Guarded makes [Stage.Place] fail with [ErrNoGuard] if root could write to a folder
	// at the place.
	Guarded bool
	// Name is the name of the source's place. If empty, the place is named by the
	// source's number. With a name, a source gets the same place even if the other
	// sources change.
	Name string

	file *os.File
	dir  bool
}

// IsDir reports whether the source is a folder.
func (s *Source) IsDir() bool { return s.dir }

// Close closes the source; its places stay.
func (s *Source) Close() { _ = s.file.Close() }

// Open opens the source of a mount as user u, and checks that it lies in an allowed folder.
// The result is one object, whatever happens to the path. The user needs the right to enter
// every folder on the path, and the source if it is a folder. The kernel checks the task's
// accesses inside, because the task runs as the same user.
func (g Gate) Open(u User, path string) (*Source, error) {
	if u.UID == standIn {
		return nil, fmt.Errorf("user %d cannot mount folders: root's files are shown as that user's", standIn)
	}
	var fd int
	var folders []int
	err := u.do(func() (err error) {
		if fd, err = open(path); err == nil {
			folders = g.open(u)
		}
		return err
	})
	defer func() {
		for _, f := range folders {
			_ = unix.Close(f)
		}
	}()
	if err != nil {
		return nil, err
	}
	s := &Source{file: os.NewFile(uintptr(fd), path)}
	if err := s.find(); err != nil {
		s.Close()
		return nil, err
	}
	for _, folder := range folders {
		before, err1 := where(folder)
		real, err2 := where(fd)
		after, err3 := where(folder)
		if errors.Join(err1, err2, err3) == nil && before == after && within(real, before) {
			s.Path = real
			return s, nil
		}
	}
	s.Close()
	return nil, &OutsideError{Path: path, Allowed: g.Allowed}
}

// open opens a file or folder only to refer to it. A folder is opened as its own ".", so
// that an automount happens and the right to enter is checked. Links in /proc bypass all
// permissions, so they are not followed.
func open(path string) (int, error) {
	if !filepath.IsAbs(path) {
		return -1, errors.New("not an absolute path")
	}
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(unix.AT_FDCWD, strings.TrimRight(path, "/")+"/.", how)
	if errors.Is(err, unix.ENOTDIR) {
		fd, err = unix.Openat2(unix.AT_FDCWD, path, how)
	}
	switch {
	case errors.Is(err, unix.ENOSYS):
		return -1, errors.New("this kernel is older than Linux 5.8: mounts of users cannot be checked")
	case errors.Is(err, unix.ELOOP):
		return -1, errors.New("too many links, or a link of /proc")
	}
	return fd, err
}

// Supported returns nil if the kernel can open a path safely.
func Supported() error {
	fd, err := open("/")
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

// open opens the allowed folders that exist.
func (g Gate) open(u User) (folders []int) {
	for _, dir := range g.Allowed {
		below, ofHome := strings.CutPrefix(dir, "~")
		if !ofHome {
			if fd, err := open(dir); err == nil {
				folders = append(folders, fd)
			}
			continue
		}
		if u.Home == "" {
			continue
		}
		home, err := open(u.Home)
		if err != nil {
			continue
		}
		if real, err := where(home); err != nil || real == "/" { // users such as daemon have the home /, which is not allowed
			_ = unix.Close(home)
			continue
		}
		if below = strings.Trim(below, "/"); below == "" {
			folders = append(folders, home)
			continue
		}
		fd, err := unix.Openat2(home, below, &unix.OpenHow{
			Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_DIRECTORY, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS,
		})
		_ = unix.Close(home)
		if err == nil {
			folders = append(folders, fd)
		}
	}
	return folders
}

// find determines the kind of file of the source. A deleted file is refused.
func (s *Source) find() error {
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(s.file.Fd()), &st); err != nil {
		return err
	}
	if st.Nlink == 0 {
		return unix.ENOENT
	}
	s.dir = info.IsDir()
	return nil
}

// where returns the path of an open file, as the kernel reports it now.
func where(fd int) (string, error) {
	path, err := os.Readlink("/proc/thread-self/fd/" + strconv.Itoa(fd))
	if err == nil && !filepath.IsAbs(path) {
		err = fmt.Errorf("%s is not a path", path)
	}
	return path, err
}

// within reports whether a real path is a folder or lies below it.
func within(path, folder string) bool {
	return path == folder || folder == "/" || strings.HasPrefix(path, folder+"/")
}
