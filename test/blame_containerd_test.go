//go:build e2e && containerd

package test

import (
	"path/filepath"
	"slices"
	"testing"

	"carma/containers"
	"carma/containers/containerd"
)

// TestContainerdBlameByEvidence is [TestBlameByEvidence] on containerd.
func TestContainerdBlameByEvidence(t *testing.T) {
	t.Parallel()
	c := newContainerd(t)
	on := []string{"--driver", "containerd", "--containerd-address", c.Address()}
	s := newServer(t, append(on, "--backoff", "1s", "--blameless-retries", "3")...)
	s.borrowCommand()
	s.start()
	s.ok(append([]string{"image", "import", toolArchive(t)}, on...)...)
	s.blameByEvidence()
	d, err := containerd.New(containerd.Options{Address: c.Address(), Dir: filepath.Join(s.dir, "containerd")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	eventually(t, "no container is left", func() bool {
		list, err := d.List(t.Context(), nil)
		return err == nil && len(list) == 0
	})
	images, err := d.Images(t.Context())
	if err != nil || !slices.ContainsFunc(images, func(i containers.StoredImage) bool { return i.Name == "carma.invalid/canary:1" }) {
		t.Errorf("the canary's image is not there: %+v, %v", images, err)
	}
}
