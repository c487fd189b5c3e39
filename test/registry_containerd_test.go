//go:build e2e && containerd

package test

import "testing"

// TestContainerdPrivateRegistry is [TestPrivateRegistry] on containerd.
func TestContainerdPrivateRegistry(t *testing.T) {
	t.Parallel()
	c := newContainerd(t)
	s := newServer(t, "--driver", "containerd", "--containerd-address", c.Address())
	s.borrowCommand()
	s.privateRegistry(func(string) {}) // removed with its containerd
}
