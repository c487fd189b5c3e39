//go:build kubernetes

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"carma/containers/containerstest"
)

// tool is the image of the suite's program. Its registry is never asked.
const tool = "localhost/carma/suite-tool:1"

// bringTool loads the suite's image onto the node.
func (c *cluster) bringTool() {
	c.t.Helper()
	archive, err := containerstest.ToolArchive(tool)
	if err != nil {
		c.t.Fatal(err)
	}
	c.bringBytes(archive)
}

func (c *cluster) bringBytes(archive []byte) {
	c.t.Helper()
	file := filepath.Join(c.t.TempDir(), "image.tar")
	if err := os.WriteFile(file, archive, 0o600); err != nil {
		c.t.Fatal(err)
	}
	c.bring(file)
}

// bringDaemon builds the image of daemon and agents as for a release, and loads it onto the
// node under the given tags.
func (c *cluster) bringDaemon(t *testing.T, tags ...string) {
	t.Helper()
	for _, tag := range tags {
		file := filepath.Join(t.TempDir(), tag+".tar")
		cmd := exec.Command("../../../images/carma/image.sh", filepath.Dir(carma), file)
		cmd.Env = append(os.Environ(), "VERSION="+tag, "SOURCE_DATE_EPOCH=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("image.sh: %v: %s", err, out)
		}
		c.bring(file)
	}
}
