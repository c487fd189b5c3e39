//go:build kubernetes

package test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"carma/containers"
	"carma/containers/kubernetes"
)

// TestNeverOver: two drivers that do not know each other pin 160 claims to 8 GPUs of 80 GiB. In
// any order, the scheduler never allocates more than a GPU has, no claim that was given up
// would have fitted, and all others have their GPU.
func TestNeverOver(t *testing.T) {
	const gpus, each, memory = 8, 80, int64(80 << 30)
	c := newCluster(t, "--no-node")
	c.fakeNode("fake")
	var uuids []string
	for i := range gpus {
		uuids = append(uuids, fmt.Sprintf("GPU-0000000%d-2222-3333-4444-555555555555", i))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var starts sync.WaitGroup
	defer starts.Wait()
	defer cancel() // cancelled before the wait
	var over atomic.Int64
	type want struct {
		gpu   int
		bytes int64
	}
	var mu sync.Mutex
	refused := map[string]want{}
	for _, namespace := range []string{"a", "b"} {
		c.namespace(namespace)
		d, err := kubernetes.New(kubernetes.Options{Kubeconfig: c.kubeconfig, Namespace: namespace, ClaimPatience: 20 * time.Second, NodePatience: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		if namespace == "a" {
			if err := d.Offer(ctx, kubernetes.Slice("fake", "Test GPU", uuids, memory)); err != nil {
				t.Fatal(err)
			}
		}
		for i := range each {
			w := want{i % gpus, int64(5+(i*7+len(namespace)*3)%36) << 30}
			name := fmt.Sprintf("claim-%d", i)
			starts.Go(func() {
				id, err := d.Create(ctx, containers.Spec{
					Name: name, Image: tool, Attach: containers.AttachClaim, GPUs: []string{uuids[w.gpu]}, GPUMemory: w.bytes, Identity: map[string]string{"task": name},
				})
				if err == nil {
					err = d.Start(ctx, id)
				}
				if ctx.Err() != nil {
					return // it is bound, and waits because there is no kubelet
				}
				if fault, ok := errors.AsType[*containers.StartFault](err); !ok || fault.Code != "gpu-taken" {
					t.Errorf("%s/%s: %v, want gpu-taken", namespace, name, err)
				}
				mu.Lock()
				defer mu.Unlock()
				refused[namespace+"/"+name] = w
				over.Add(1)
			})
		}
	}
	var bound int
	var sums map[string]int64
	c.until("all claims are decided", func() bool {
		bound, sums = c.booked()
		for device, sum := range sums {
			if sum > memory {
				t.Errorf("%s has %d GiB booked", device, sum>>30)
			}
		}
		return t.Failed() || bound+int(over.Load()) == 2*each
	})
	cancel()
	starts.Wait()
	for name, w := range refused {
		if free := memory - sums[fmt.Sprint("gpu-", w.gpu)]; w.bytes <= free {
			t.Errorf("%s was given up for %d GiB, though %d are free", name, w.bytes>>30, free>>30)
		}
	}
	if bound < 2*gpus {
		t.Errorf("only %d claims have a GPU", bound)
	}
	t.Logf("%d claims have a GPU, %d were given up; booked of each GPU: %v", bound, over.Load(), sums)
}

// booked returns the number of claims that have a device, and the sum of their memory by
// device.
func (c *cluster) booked() (bound int, sums map[string]int64) {
	c.t.Helper()
	sums = map[string]int64{}
	list, ok := get[resourcev1.ResourceClaimList](c, "/apis/resource.k8s.io/v1/resourceclaims")
	if !ok {
		c.t.Fatal("claims cannot be listed")
	}
	for i := range list.Items {
		a := list.Items[i].Status.Allocation
		if a == nil {
			continue
		}
		bound++
		for _, r := range a.Devices.Results {
			q := r.ConsumedCapacity["memory"]
			sums[r.Device] += quantity(q)
		}
	}
	return bound, sums
}

func quantity(q resource.Quantity) int64 { return q.Value() }

// fakeNode makes a node without a kubelet. Pods that are bound to it do not run.
func (c *cluster) fakeNode(name string) {
	c.t.Helper()
	c.must(http.MethodPost, "/api/v1/nodes", fmt.Sprintf(`{"metadata":{"name":%q},"status":{"capacity":{"cpu":"1k","memory":"4Ti","pods":"500"},
		"allocatable":{"cpu":"1k","memory":"4Ti","pods":"500"},"conditions":[{"type":"Ready","status":"True","reason":"Fake"}]}}`, name))
	lease := "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/" + name
	c.until("there is a namespace kube-node-lease", func() bool { _, ok := get[any](c, "/api/v1/namespaces/kube-node-lease"); return ok })
	c.must(http.MethodPost, lease[:len(lease)-len(name)-1], fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"holderIdentity":%q}}`, name, name))
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { // renews the node's Lease
		for tick := time.NewTicker(5 * time.Second); ; {
			body := fmt.Sprintf(`{"spec":{"renewTime":%q}}`, time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"))
			c.send(http.MethodPatch, lease, "application/merge-patch+json", []byte(body))
			select {
			case <-ctx.Done():
				tick.Stop()
				return
			case <-tick.C:
			}
		}
	})
	c.t.Cleanup(func() { cancel(); done.Wait() })
}
