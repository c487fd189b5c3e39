//go:build kubernetes

package kubernetes_test

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"carma/containers"
	"carma/containers/kubernetes"
	"carma/containers/kubernetes/simgpus"
)

// admin sends a request to the apiserver as the cluster's administrator, and returns the
// answer.
func admin(t *testing.T, words ...string) string {
	t.Helper()
	cmd := exec.Command("bash", append([]string{"-c", `. test/lib.sh; api "$@"`, "api"}, words...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v: %s", words, err, out)
	}
	return string(out)
}

const (
	uuid1 = "GPU-11111111-2222-3333-4444-555555555555"
	uuid2 = "GPU-22222222-2222-3333-4444-555555555555"
)

// TestRealStuck checks on the real scheduler and kubelet that an impossible start ends in time
// with the reason: a claim of another namespace has the GPU, the node is cordoned, or the DRA
// driver does not run. It also checks the inventory before.
func TestRealStuck(t *testing.T) {
	kubeconfig := realCluster(t)
	bring(t)
	admin(t, "POST", "/api/v1/namespaces", `{"metadata":{"name":"other"}}`)
	at := func(namespace string) *kubernetes.Driver {
		d, err := kubernetes.New(kubernetes.Options{
			Kubeconfig: kubeconfig, Namespace: namespace, StopGrace: time.Second, ClaimPatience: 3 * time.Second, NodePatience: 10 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		return d
	}
	lab, other := at("default"), at("other")
	state := filepath.Dir(kubeconfig)
	serve := func() *simgpus.Plugin {
		p, err := simgpus.Start(t.Context(), simgpus.Options{
			Cluster: lab, Node: "localhost", UUIDs: []string{uuid1, uuid2}, Model: "Test GPU", Bytes: 80 << 30, Kubelet: filepath.Join(state, "kubelet"), CDI: filepath.Join(state, "cdi"),
		})
		if err != nil {
			t.Fatal(err)
		}
		taken(t, p)
		return p
	}
	p := serve()
	var remove []func() error
	start := func(d *kubernetes.Driver, name string, bytes int64, gpu string) error {
		id, err := d.Create(t.Context(), containers.Spec{
			Name: name, Image: realTool, Command: []string{"block:0"}, Attach: containers.AttachClaim, GPUs: []string{gpu}, GPUMemory: bytes,
			Identity: map[string]string{"task": name},
		})
		if err != nil {
			t.Fatal(err)
		}
		remove = append(remove, func() error {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			return d.Remove(ctx, id)
		})
		return d.Start(t.Context(), id)
	}
	clear := func() {
		t.Helper()
		for _, f := range remove {
			if err := f(); err != nil {
				t.Error(err)
			}
		}
		remove = nil
	}
	want := func(err error, code, says string) {
		t.Helper()
		fault, ok := errors.AsType[*containers.StartFault](err)
		if !ok || fault.Code != code || fault.Scope != containers.ScopeGPU || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %s: %s", err, code, says)
		}
	}
	if err := start(other, "train", 60<<30, uuid1); err != nil {
		t.Fatal(err)
	}
	want(start(lab, "taken", 30<<30, uuid1), "gpu-taken", "wanted: "+uuid1+"; claim other/train has 60.0 GiB")
	seen, err := lab.Inventory(t.Context())
	if err != nil || len(seen.Devices) != 2 || len(seen.Nodes) != 1 || seen.Nodes[0].Closed != "" || seen.Nodes[0].Boot == "" {
		t.Errorf("%+v, %v", seen, err)
	}
	if len(seen.Claims) != 1 || seen.Claims[0].Ours || seen.Claims[0].Bytes != 60<<30 || seen.Claims[0].Device != seen.Devices[0].Device {
		t.Errorf("claims %+v", seen.Claims)
	}
	admin(t, "PATCH", "/api/v1/nodes/localhost", `{"spec":{"unschedulable":true}}`)
	want(start(lab, "cordoned", 1<<30, uuid2), "node-closed", "unschedulable")
	if seen, err := lab.Inventory(t.Context()); err != nil || seen.Nodes[0].Closed != "its node localhost is cordoned" {
		t.Errorf("%+v, %v", seen.Nodes, err)
	}
	admin(t, "PATCH", "/api/v1/nodes/localhost", `{"spec":{"unschedulable":null}}`)
	clear()
	// The slice is published, but the kubelet does not know the driver.
	if err := p.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := lab.Offer(t.Context(), kubernetes.Slice("localhost", "Test GPU", []string{uuid1, uuid2}, 80<<30)); err != nil {
		t.Fatal(err)
	}
	want(start(lab, "unprepared", 1<<30, uuid2), "node-stuck", "FailedPrepareDynamicResources")
	p = serve() // without the driver the kubelet cannot end a pod with a claim
	clear()
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
