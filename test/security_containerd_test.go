//go:build e2e && containerd

package test

import (
	"os"
	"path/filepath"
	"testing"

	"carma/containers/containerstest"
)

// TestSecurityMountRaceContainerd is [TestSecurityMountRace] on containerd.
func TestSecurityMountRaceContainerd(t *testing.T) {
	t.Parallel()
	c := newContainerd(t)
	on := []string{"--driver", "containerd", "--containerd-address", c.Address()}
	s := newServer(t, on...)
	program, err := os.ReadFile(filepath.Join(scratch, "tool"))
	if err != nil {
		t.Fatal(err)
	}
	tar, err := containerstest.Archive("docker.io/library/"+tool, "/tool", program, containerstest.ImageConfig{Entrypoint: []string{"/tool"}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "tool.tar")
	if err := os.WriteFile(path, tar, 0o644); err != nil {
		t.Fatal(err)
	}
	s.ok(append([]string{"image", "import", path}, on...)...)
	mountRace(newAttacker(s))
}
