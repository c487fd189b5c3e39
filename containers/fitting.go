package containers

import (
	"cmp"
	"context"
	"fmt"
)

// Ulimit is a limit of a container's processes, by the kernel's name in small letters:
// nofile, memlock. -1 means no limit.
type Ulimit struct {
	Name       string
	Soft, Hard int64
}

// Tmpfs is a folder of a container in memory. Set-uid programs and devices have no effect
// in it.
type Tmpfs struct {
	Target   string // absolute
	Size     int64  // bytes
	Mode     string // octal; 1777 if empty
	ReadOnly bool
	Exec     bool // programs in it can run
	UID, GID int  // owner
}

// Options returns the mount's options.
func (t Tmpfs) Options() []string {
	access, exec, mode := "rw", "noexec", t.Mode
	if t.ReadOnly {
		access = "ro"
	}
	if t.Exec {
		exec = "exec"
	}
	if mode == "" {
		mode = "1777"
	}
	return []string{access, "nosuid", "nodev", exec, "mode=" + mode, fmt.Sprintf("size=%d", t.Size), fmt.Sprintf("uid=%d", t.UID), fmt.Sprintf("gid=%d", t.GID)}
}

// Device is a host device that a container gets.
type Device struct {
	Source, Target string
	Permissions    string // some of r, w and m
}

// Port is a port of a container that can be reached on 127.0.0.1 of this machine.
type Port struct {
	Port     int    // in the container
	Protocol string // tcp or udp
	Host     int    // on the machine; 0 in a [Spec] means any free port
}

// String formats the port like 8888/tcp.
func (p Port) String() string { return fmt.Sprintf("%d/%s", p.Port, p.Protocol) }

// ComparePorts sorts ports by their number in the container.
func ComparePorts(a, b Port) int {
	return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Host, b.Host))
}

// Publisher is a driver that opens the ports of containers.
type Publisher interface {
	// CanPublish returns the reason why a port of this protocol cannot be opened here, or
	// nil if it can.
	CanPublish(protocol string) error
	// Ports returns the open ports of a running container, with the host port of each. If
	// the engine opens no ports, the driver opens them, and keeps them open until it is
	// closed or the container has ended. Ports may be called again, also by another process.
	Ports(ctx context.Context, id string) ([]Port, error)
}

// InitTarget is the path of carma-init in containers that have it.
const InitTarget = "/.carma/init"
