//go:build !linux

package simgpu

import "net"

// peerPID returns 0: the PID is known only on Linux.
func peerPID(*net.UnixConn) int { return 0 }
