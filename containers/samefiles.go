package containers

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Near is a driver that can tell whether its engine shares this process's file systems.
type Near interface {
	// SameFiles returns nil if the engine sees the same file systems as this process, with
	// every mount. Otherwise the error contains the reason; it wraps [ErrRemote] for an
	// engine on another machine.
	SameFiles() error
}

// ErrRemote means that the engine seems to be on another machine.
var ErrRemote = errors.New("the container engine is not on this machine")

// SameMounts implements [Near] for an engine that listens at a unix socket: the engine
// must be in this process's mount namespace.
func SameMounts(socket string) error {
	c, err := net.DialTimeout("unix", socket, 5*time.Second)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer c.Close()
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	var peerErr error
	if err := raw.Control(func(fd uintptr) {
		peer, peerErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil || peerErr != nil {
		return errors.Join(err, peerErr)
	}
	own, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return err
	}
	its, err := os.Readlink("/proc/" + strconv.Itoa(int(peer.Pid)) + "/ns/mnt")
	if err != nil || its != own {
		return fmt.Errorf("the container engine at %s does not see the mounts that carma sees: one of them runs in a mount namespace of its own (systemd: PrivateMounts, ProtectSystem, ProtectHome, PrivateTmp; or in a container)", socket)
	}
	return nil
}
