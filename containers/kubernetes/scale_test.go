//go:build kubernetes

package kubernetes_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"carma/containers"
	"carma/containers/kubernetes"
	"carma/containers/kubernetes/test/fleet"
)

var (
	scaleNodes = flag.Int("scale.nodes", 1250, "nodes of TestScale, of 8 GPUs each")
	scalePods  = flag.Int("scale.pods", 1000, "pods of TestScale's burst")
)

// TestScale prints how many pinned pods per second a control plane accepts, and the time from
// carma's decision to the scheduler's allocation, in a burst on a cluster of fake nodes. make
// kubernetes-scale runs it. It has no time limit, but no pod may be lost or left, and no GPU
// allocated twice.
func TestScale(t *testing.T) {
	t.Setenv("KUBERNETES_NODE_GRACE", "24h") // no kubelet reports that a node is alive
	config := controlPlane(t)
	f := fleet.New(t, config)
	began := time.Now()
	f.Join(*scaleNodes)
	t.Logf("%d nodes with %d GPUs joined in %.1f s", *scaleNodes, 8**scaleNodes, time.Since(began).Seconds())
	// A start must not fail because the machine is slow.
	d, err := kubernetes.New(kubernetes.Options{Kubeconfig: config, ClaimPatience: 10 * time.Minute, NodePatience: 10 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	see(t, d, 8**scaleNodes)

	allocated := f.Allocations(t)
	f.Kubelets(t)
	cpu := f.CPU()
	var mu sync.Mutex
	var all sync.WaitGroup
	asked, made, ids := map[string]time.Time{}, map[string]time.Time{}, []string{}
	began = time.Now()
	for i := range *scalePods {
		all.Go(func() {
			// The GPU with every third index, and its neighbour, so that claims share some GPUs.
			name := fmt.Sprintf("scale-%d", i)
			spec := containers.Spec{Name: name, Image: "none", GPUs: []string{fleet.GPU(i * 3 % (8 * *scaleNodes))}, GPUMemory: 10 << 30, Attach: containers.AttachSimulated}
			now := time.Now()
			id, err := d.Create(t.Context(), spec)
			if err == nil {
				mu.Lock()
				asked[name], made[name], ids = now, time.Now(), append(ids, id)
				mu.Unlock()
				err = d.Start(t.Context(), id)
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	all.Wait()
	running := time.Since(began)
	at := allocated(*scalePods)
	var waits, sent []time.Duration
	last := began
	for name, when := range at {
		waits, sent = append(waits, when.Sub(asked[name])), append(sent, when.Sub(made[name]))
		last = maxTime(last, when)
	}
	slices.Sort(waits)
	slices.Sort(sent)
	if len(waits) != *scalePods {
		t.Fatalf("%d of %d claims were allocated", len(waits), *scalePods)
	}
	load, _ := os.ReadFile("/proc/loadavg")
	t.Logf("%d pinned pods: %.1f a second until the last was allocated (%.1f s) and %.1f until the last ran (%.1f s)", *scalePods,
		float64(*scalePods)/last.Sub(began).Seconds(), last.Sub(began).Seconds(), float64(*scalePods)/running.Seconds(), running.Seconds())
	t.Logf("decision to allocated: median %.2f s, p99 %.2f s, longest %.2f s", waits[len(waits)/2].Seconds(), waits[len(waits)*99/100].Seconds(), waits[len(waits)-1].Seconds())
	t.Logf("made to allocated: median %.2f s, p99 %.2f s", sent[len(sent)/2].Seconds(), sent[len(sent)*99/100].Seconds())
	t.Logf("CPU s of the control plane: %s; of this process %.1f; load %s", f.CPUSince(cpu), f.Own(cpu), strings.TrimSpace(string(load)))
	f.NotOver(t, 80<<30)

	began = time.Now()
	for _, id := range ids {
		all.Go(func() {
			for _, do := range []func(context.Context, string) error{d.Kill, d.Remove} {
				err := do(t.Context(), id)
				for errors.Is(err, containers.ErrUnavailable) { // the apiserver is overloaded
					err = do(t.Context(), id)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d pods were stopped and removed in %.1f s", len(ids), time.Since(began).Seconds())
	if left, err := d.List(t.Context(), nil); err != nil || len(left) > 0 {
		t.Errorf("%d pods are left, %v", len(left), err)
	}
}

// see waits until the driver sees this number of GPUs.
func see(t *testing.T, d *kubernetes.Driver, gpus int) {
	t.Helper()
	began := time.Now()
	for {
		is, err := d.Inventory(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(is.Devices) == gpus && !slices.ContainsFunc(is.Nodes, func(n kubernetes.Node) bool { return n.Closed != "" }) {
			t.Logf("the driver saw them, all open, after %.1f s", time.Since(began).Seconds())
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("%d GPUs", len(is.Devices))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// controlPlane starts a control plane without a node, and returns its kubeconfig.
func controlPlane(t *testing.T) string {
	t.Helper()
	if out, err := exec.Command("test/build.sh", "--cached").CombinedOutput(); err != nil {
		t.Skip(strings.TrimSpace(string(out)))
	}
	if os.Getenv("KUBERNETES_STATE") == "" {
		t.Setenv("KUBERNETES_STATE", "/tmp/carma-kubernetes-scale")
		t.Setenv("KUBERNETES_PORT", "17643")
	}
	script(t, "down.sh")
	t.Cleanup(func() { script(t, "down.sh") })
	return script(t, "up.sh", "--no-node")
}
