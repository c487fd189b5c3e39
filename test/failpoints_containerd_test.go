//go:build e2e && failpoints && containerd

package test

import "testing"

func init() { onContainerd = newContainerdLab }

// newContainerdLab makes a lab on a containerd of its own.
func newContainerdLab(t *testing.T) *lab {
	t.Helper()
	c := newContainerd(t)
	on := []string{"--driver", "containerd", "--containerd-address", c.Address()}
	l := newLab(t, on...)
	for _, archive := range []string{simtaskArchive(t), toolArchive(t)} {
		l.ok(append([]string{"image", "import", archive}, on...)...)
	}
	l.witness = watchContainerd(t, c)
	return l
}
