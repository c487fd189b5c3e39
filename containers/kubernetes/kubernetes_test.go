package kubernetes

import (
	"os"
	"testing"
	"time"

	"carma/containers"
	"carma/containers/containerstest"
)

const toolImage = "carma/suite-tool:1"

// Lacks lists the missing features of a cluster, as in docs/kubernetes.md. The test on a real
// cluster uses the list too.
var Lacks = containerstest.Lacks{Streams: true, Group: true, Images: true, LogBytes: true, Shell: true, Prompt: true, Bars: true}

func TestSuite(t *testing.T) {
	c := newCluster(t, toolImage)
	c.offer("node-1", "GPU-1", "GPU-2")
	containerstest.Suite(t, func(t *testing.T) containers.Driver {
		return c.driver(t, Options{HostPaths: []string{os.TempDir()}, StopGrace: 3 * time.Second})
	}, containerstest.Images{Tool: toolImage, Missing: "carma/no-such-image:1", Lacks: Lacks})
	if pods, claims := c.has(); pods != 0 || claims != 0 {
		t.Errorf("%d pods and %d claims are left", pods, claims)
	}
}
