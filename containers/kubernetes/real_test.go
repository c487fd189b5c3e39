//go:build kubernetes

package kubernetes_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/containers/kubernetes"
	"carma/containers/kubernetes/simgpus"
)

// script runs one of the scripts in folder test and returns its output.
func script(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join("test", name), args...)
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
	cached := exec.Command("test/build.sh", "--cached")
	if out, err := cached.CombinedOutput(); err != nil {
		if code, ok := errors.AsType[*exec.ExitError](err); ok && code.ExitCode() == 3 {
			t.Skip(strings.TrimSpace(string(out)))
		}
		t.Fatalf("%v: %s", err, out)
	}
	// The cluster is separate from a cluster that somebody uses. The path of a socket must be
	// short.
	if os.Getenv("KUBERNETES_STATE") == "" {
		t.Setenv("KUBERNETES_STATE", "/tmp/carma-kubernetes-test")
		t.Setenv("KUBERNETES_PORT", "17443")
	}
	script(t, "down.sh")
	t.Cleanup(func() { script(t, "down.sh") })
	return script(t, "up.sh")
}

// bring loads the suite's image onto the node.
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

func driver(t *testing.T, kubeconfig string) *kubernetes.Driver {
	t.Helper()
	d, err := kubernetes.New(kubernetes.Options{
		Kubeconfig: kubeconfig, HostPaths: []string{os.TempDir()}, StopGrace: 3 * time.Second, ClaimPatience: 3 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// offer publishes two simulated GPUs of 80 GiB until the test ends.
func offer(t *testing.T, kubeconfig string) {
	t.Helper()
	d := driver(t, kubeconfig)
	state := filepath.Dir(kubeconfig)
	p, err := simgpus.Start(t.Context(), simgpus.Options{
		Cluster: d, Node: "localhost", UUIDs: []string{"GPU-1", "GPU-2"}, Bytes: 80 << 30,
		Kubelet: filepath.Join(state, "kubelet"), CDI: filepath.Join(state, "cdi"), Env: []string{"SIMULATED=yes"},
	})
	if err != nil {
		t.Fatal(err)
	}
	taken(t, p)
	t.Cleanup(func() {
		if err := errors.Join(p.Close(context.Background()), d.Close()); err != nil {
			t.Error(err)
		}
	})
}

// taken waits until the kubelet has registered the driver.
func taken(t *testing.T, p *simgpus.Plugin) {
	t.Helper()
	select {
	case <-p.Offered():
	case <-time.After(time.Minute):
		t.Fatal("the kubelet does not take the driver in")
	}
}

// TestRealBooking: on the real scheduler and kubelet, tasks share a GPU by their amounts of
// memory, a task that does not fit is requeued, and a task that ends frees its memory.
func TestRealBooking(t *testing.T) {
	kubeconfig := realCluster(t)
	bring(t)
	offer(t, kubeconfig)
	d := driver(t, kubeconfig)
	defer d.Close()
	start := func(name string, bytes int64, gpus ...string) (string, error) {
		id, err := d.Create(t.Context(), containers.Spec{
			Name: name, Image: realTool, Command: []string{"env:SIMULATED", "env:NVIDIA_VISIBLE_DEVICES", "block:0"},
			Attach: containers.AttachSimulated, GPUs: gpus, GPUMemory: bytes, Identity: map[string]string{"task": name},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Remove(context.Background(), id) })
		return id, d.Start(t.Context(), id)
	}
	large, err := start("large", 50<<30, "GPU-1")
	if err != nil {
		t.Fatal(err)
	}
	// The managedFields of the pod are not written at each change after the start.
	if pod := admin(t, "GET", "/api/v1/namespaces/default/pods/large"); !strings.Contains(pod, `"phase": "Running"`) || strings.Contains(pod, "managedFields") {
		t.Errorf("the pod that runs: %s", pod)
	}
	both, err := start("both", 20<<30, "GPU-1", "GPU-2")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := d.Attached(t.Context(), both); err != nil || got.Visible != "GPU-1,GPU-2" {
		t.Errorf("attached %+v, %v", got, err)
	}
	third, err := start("third", 30<<30, "GPU-1")
	if fault, ok := errors.AsType[*containers.StartFault](err); !ok || fault.Code != "gpu-taken" {
		t.Fatalf("a third task: %v, want gpu-taken", err)
	}
	for _, id := range []string{third, large} {
		if err := d.Remove(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	again, err := start("third", 60<<30, "GPU-1")
	if err != nil {
		t.Fatalf("after the large one has gone: %v", err)
	}
	var lines []string
	if err := d.Kill(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	err = d.Logs(t.Context(), again, time.Time{}, true, func(_ time.Time, _ containers.Stream, line []byte, _ bool) { lines = append(lines, string(line)) })
	if err != nil || len(lines) < 2 || lines[0] != "SIMULATED=yes" || lines[1] != "NVIDIA_VISIBLE_DEVICES=GPU-1" {
		t.Errorf("%q, %v", lines, err)
	}
}

// TestRealTelling checks that a real apiserver refuses to write a Lease that somebody has
// changed or deleted since the agent wrote it, and that the agent's report is published
// nevertheless.
func TestRealTelling(t *testing.T) {
	kubeconfig := realCluster(t)
	agent, daemon := driver(t, kubeconfig), driver(t, kubeconfig)
	defer agent.Close()
	defer daemon.Close()
	tell := func(text string) []string {
		t.Helper()
		asked, err := agent.Tell(t.Context(), "node-1", text, nil)
		if err != nil {
			t.Fatal(err)
		}
		if told, err := daemon.Told(t.Context(), "node-1"); err != nil || told != text {
			t.Errorf("told %q, %v, want %q", told, err, text)
		}
		return asked
	}
	tell("one")
	tell("two")
	if err := daemon.Forgive(t.Context(), "node-1", "GPU-1"); err != nil {
		t.Fatal(err)
	}
	if asked := tell("three"); !slices.Equal(asked, []string{"GPU-1"}) {
		t.Errorf("asked for %q", asked)
	}
	admin(t, "DELETE", "/apis/coordination.k8s.io/v1/namespaces/default/leases/carma-node-node-1")
	tell("four")
	tell("five")
}

// realTool is an image in a registry that is never asked.
const realTool = "localhost/carma/suite-tool:1"

// emptyRegistry serves a registry without images.
func emptyRegistry(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v2/" {
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// TestRealSuite runs the suite on a real apiserver, scheduler and kubelet.
func TestRealSuite(t *testing.T) {
	kubeconfig := realCluster(t)
	bring(t)
	offer(t, kubeconfig)
	containerstest.Suite(t, func(t *testing.T) containers.Driver {
		return driver(t, kubeconfig)
	}, containerstest.Images{Tool: realTool, Missing: emptyRegistry(t) + "/carma/no-such-image:1", Lacks: kubernetes.Lacks})
}
