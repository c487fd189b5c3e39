package mounts

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// User identifies the user who asks for a mount.
type User struct {
	UID, GID int
	Groups   []int  // supplementary groups
	Home     string // home folder, or "" if none
}

// ErrOthers means that the daemon does not run as root. Only root can determine which
// files another user may reach.
var ErrOthers = errors.New("this daemon does not run as root, so only its own user can mount folders")

// do runs f with the file permissions of a user: the user's ID and groups, and no
// capability for files. Nothing else in the process changes. The thread that ran f ends
// after f, so that no other goroutine gets these rights.
func (u User) do(f func() error) error {
	if self := os.Geteuid(); self != 0 {
		if u.UID != self {
			return ErrOthers
		}
		return f()
	}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread ends here
		if err := u.assume(); err != nil {
			done <- fmt.Errorf("take the rights of user %d: %w", u.UID, err)
			return
		}
		done <- f()
	}()
	return <-done
}

// assume sets the file permissions of the calling thread to the user's. It makes the
// system calls directly, because the functions of package syscall change all threads.
func (u User) assume() error {
	groups := make([]uint32, len(u.Groups))
	for i, g := range u.Groups {
		groups[i] = uint32(g)
	}
	var first unsafe.Pointer
	if len(groups) > 0 {
		first = unsafe.Pointer(&groups[0])
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(first), 0); e != 0 {
		return e
	}
	const ask = ^uintptr(0) // no valid ID, so the call only returns the current one
	unix.RawSyscall(unix.SYS_SETFSGID, uintptr(u.GID), 0, 0)
	if gid, _, _ := unix.RawSyscall(unix.SYS_SETFSGID, ask, 0, 0); uint32(gid) != uint32(u.GID) {
		return syscall.EPERM
	}
	unix.RawSyscall(unix.SYS_SETFSUID, uintptr(u.UID), 0, 0)
	if uid, _, _ := unix.RawSyscall(unix.SYS_SETFSUID, ask, 0, 0); uint32(uid) != uint32(u.UID) {
		return syscall.EPERM
	}
	return nil
}
