package mounts

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"sync"

	"github.com/containerd/containerd/v2/core/mount"
	"golang.org/x/sys/unix"
)

// ErrNoGuard means that the kernel cannot prevent root from writing to a mount. The
// kernel is older than Linux 5.12, or the file system (NFS, for example) has no mounts
// with mapped users.
var ErrNoGuard = errors.New("its file system cannot be mounted without root's rights")

// standIn is the user that root's files seem to belong to. No user has this ID, the last
// one before the kernel's "no user".
const standIn = 1<<32 - 2

// withoutRoot returns a user namespace for mounts that maps every user to itself, except
// root, which it maps to standIn. So there is no user 0.
var withoutRoot = sync.OnceValues(func() (*os.File, error) {
	return mount.GetUsernsFD(fmt.Sprintf("0:%d:1,1:1:%d", standIn, standIn-1), "0:0:4294967295")
})

// bindWithoutRoot binds an open folder to a place where root can create nothing. A
// container runtime works as root. It makes missing mount points and working folders, and
// follows links of the image and of the folder to them. In this place it can make
// nothing, whatever path it followed. All other users have their usual rights in the
// folder.
func (s *Source) bindWithoutRoot(place string) error {
	users, err := withoutRoot()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoGuard, err)
	}
	for _, depth := range []uint{unix.AT_RECURSIVE, 0} { // a mount in the folder may have another file system
		if err = s.moveWithoutRoot(users, place, depth); !errors.Is(err, ErrNoGuard) {
			return err
		}
	}
	return err
}

func (s *Source) moveWithoutRoot(users *os.File, place string, depth uint) error {
	tree, err := unix.OpenTree(int(s.file.Fd()), "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoGuard, err)
	}
	defer unix.Close(tree)
	attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(users.Fd())}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|depth, attr); err != nil {
		return fmt.Errorf("%w: %w", ErrNoGuard, err)
	}
	return unix.MoveMount(tree, "", unix.AT_FDCWD, place, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// Make makes a folder or an empty file below the source, and the folders above it, with
// the rights of user u. Existing files and folders stay. At a link in the path, Make
// stops without an error. The container's runtime follows the link, and finds the mount
// point there or not.
func (s *Source) Make(u User, below string, dir bool) error {
	return u.do(func() error {
		at, err := unix.Openat(int(s.file.Fd()), ".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		names := strings.Split(strings.Trim(path.Clean("/"+below), "/"), "/")
		for i, name := range names {
			if err != nil {
				break
			}
			if i == len(names)-1 && !dir {
				err = makeFile(at, name)
				break
			}
			above := at
			at, err = makeFolder(above, name)
			_ = unix.Close(above)
		}
		if at >= 0 {
			_ = unix.Close(at)
		}
		if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
			return nil
		}
		return err
	})
}

// makeFolder opens a folder, and makes it if it is missing.
func makeFolder(above int, name string) (int, error) {
	failed := unix.Mkdirat(above, name, 0o755)
	at, err := unix.Openat(above, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return -1, failed
	}
	return at, err
}

func makeFile(at int, name string) error {
	fd, err := unix.Openat(at, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	if err == nil {
		err = unix.Close(fd)
	}
	return err
}
