//go:build kubernetes

package kubernetes

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carma/containers"
	"carma/containers/containerstest"
)

// script runs one of test/kubernetes' scripts and returns what it prints.
func script(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join("../../test/kubernetes", name), args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return strings.TrimSpace(string(out))
}

// realCluster starts a Kubernetes on this machine for the test, and returns its
// kubeconfig. It skips the test if the programs are not built.
func realCluster(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a node needs root")
	}
	cached := exec.Command("../../test/kubernetes/build.sh", "--cached")
	if out, err := cached.CombinedOutput(); err != nil {
		if code, ok := errors.AsType[*exec.ExitError](err); ok && code.ExitCode() == 3 {
			t.Skip(strings.TrimSpace(string(out)))
		}
		t.Fatalf("%v: %s", err, out)
	}
	// Apart from a cluster that somebody uses. A socket's path must be short.
	t.Setenv("KUBERNETES_STATE", "/tmp/carma-kubernetes-test")
	t.Setenv("KUBERNETES_PORT", "17443")
	script(t, "down.sh")
	t.Cleanup(func() { script(t, "down.sh") })
	return script(t, "up.sh")
}

// bring puts the suite's image onto the node.
func bring(t *testing.T) {
	t.Helper()
	archive, err := containerstest.ToolArchive(realTool)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "tool.tar")
	if err := os.WriteFile(file, archive, 0o600); err != nil {
		t.Fatal(err)
	}
	script(t, "import.sh", file)
}

// realTool has a registry that nobody asks.
const realTool = "localhost/carma/suite-tool:1"

// emptyRegistry answers that it has no image.
func emptyRegistry(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v2/" {
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// TestRealSuite is the suite on a real apiserver, scheduler and kubelet.
func TestRealSuite(t *testing.T) {
	kubeconfig := realCluster(t)
	bring(t)
	lacks := lacks
	lacks.GPUs = true // the DRA driver of simulated GPUs is not there yet
	containerstest.Suite(t, func(t *testing.T) containers.Driver {
		d, err := New(Options{Kubeconfig: kubeconfig, HostPaths: []string{os.TempDir()}, StopGrace: 3 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}, containerstest.Images{Tool: realTool, Missing: emptyRegistry(t) + "/carma/no-such-image:1", Lacks: lacks})
}
