//go:build e2e && containerd

package test

import "testing"

// TestContainerdBare tests tasks without an image on containerd, with the same attacks.
func TestContainerdBare(t *testing.T) {
	t.Parallel()
	c := newContainerd(t)
	a := newAttacker(newServer(t, "--driver", "containerd", "--containerd-address", c.Address()))
	a.bareHome()
	a.environments()
	a.terminals()
	a.walls("containerd")
}
