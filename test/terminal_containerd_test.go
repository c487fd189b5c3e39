//go:build e2e && containerd

package test

import "testing"

// TestContainerdTerminal is [TestTerminal] on containerd.
func TestContainerdTerminal(t *testing.T) {
	t.Parallel()
	s, _, clean := onContainerdWith(t, "--idle-stop", "0s")
	s.start()
	s.terminal()
	clean()
}

// TestContainerdInside is [TestInside] on containerd.
func TestContainerdInside(t *testing.T) {
	t.Parallel()
	s, _, clean := onContainerdWith(t, "--idle-stop", "0s")
	s.start()
	s.inside()
	clean()
}
