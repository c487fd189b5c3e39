package kubernetes

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carma/containers"
	"carma/containers/kubernetes/manifest"
)

const uuidA = "GPU-11111111-2222-3333-4444-555555555555"

// foreignClaim returns a claim of somebody else for a device of node-1.
func foreignClaim(bytes int64) resourcev1.ResourceClaim {
	claim := resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "train"}}
	claim.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{
		Driver: SimulatedDriver, Pool: "node-1", Device: "gpu-0",
		ConsumedCapacity: map[resourcev1.QualifiedName]resource.Quantity{"memory": *resource.NewQuantity(bytes, resource.BinarySI)},
	}}}}
	return claim
}

// TestStuck checks that a start that the cluster cannot complete ends in time, with the reason
// and the right scope.
func TestStuck(t *testing.T) {
	event := func(kind, reason, text string) func(*cluster, *corev1.Pod) {
		return func(c *cluster, p *corev1.Pod) {
			c.incident = append(c.incident, corev1.Event{Type: kind, Reason: reason, Message: text, LastTimestamp: metav1.Now(), InvolvedObject: corev1.ObjectReference{UID: p.UID}})
		}
	}
	cannot := func(text string) func(*cluster, *corev1.Pod) {
		return func(c *cluster, p *corev1.Pod) {
			p.Spec.NodeName = ""
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: text}}
		}
	}
	for what, tc := range map[string]struct {
		happens    func(*cluster, *corev1.Pod)
		code, says string
		goes       bool // it may still start
	}{
		"nothing is said":    {func(*cluster, *corev1.Pod) {}, "node-stuck", "has said nothing", false},
		"a claim unprepared": {event("Warning", "FailedPrepareDynamicResources", "DRA driver gpu.carma.dev is not registered"), "node-stuck", "FailedPrepareDynamicResources: DRA driver", false},
		"a large image":      {event("Normal", "Pulling", "Pulling image"), "", "", true},
		"the node is gone":   {func(c *cluster, _ *corev1.Pod) { c.nodes = nil }, "node-stuck", "node node-1 is gone", false},
		"the node is silent": {func(c *cluster, _ *corev1.Pod) {
			c.nodes[0].Status.Conditions[0].Status, c.nodes[0].Status.Conditions[0].Message = corev1.ConditionUnknown, "Kubelet stopped posting"
		}, "node-stuck", "is not ready: Kubelet stopped", false},
		"cordoned":          {cannot("0/1 nodes are available: 1 node(s) were unschedulable."), "node-closed", "were unschedulable", false},
		"tainted":           {cannot("0/1 nodes are available: 1 node(s) had untolerated taint(s)."), "node-closed", "untolerated", false},
		"removed before":    {cannot("0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."), "node-gone", "affinity", false},
		"too little memory": {cannot("0/1 nodes are available: 1 Insufficient memory."), "node-full", "Insufficient memory", false},
		"a claim of somebody": {func(c *cluster, p *corev1.Pod) {
			c.foreign = append(c.foreign, foreignClaim(60<<30))
			cannot("0/1 nodes are available: 1 cannot allocate all claims.")(c, p)
		}, "gpu-taken", "wanted: " + uuidA + "; claim other/train has 60.0 GiB", false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, toolImage)
			c.offer("node-1", uuidA)
			c.node("node-1")
			c.idle = true
			d := c.driver(t, Options{ClaimPatience: 100 * time.Millisecond, NodePatience: 300 * time.Millisecond})
			defer d.Close()
			spec := task("x", "exit:0")
			spec.GPUs, spec.GPUMemory = []string{uuidA}, 30<<30
			id, err := d.Create(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			c.mu.Lock()
			pod := c.pods["x"]
			pod.Spec.NodeName = "node-1" // as if the scheduler had been faster than Start
			tc.happens(c, pod)
			if pod.Spec.NodeName == "" {
				pod.Spec.NodeName = "none" // the fake scheduler ignores the pod
			}
			c.touch()
			c.mu.Unlock()
			done := make(chan error, 1)
			go func() { done <- d.Start(t.Context(), id) }()
			select {
			case err = <-done:
			case <-time.After(2 * time.Second):
				if tc.goes {
					return
				}
				t.Fatal("the start does not end")
			}
			fault, ok := errors.AsType[*containers.StartFault](err)
			if tc.goes || !ok || fault.Code != tc.code || fault.Scope != containers.ScopeGPU || !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("%v (%+v), want %s", err, fault, tc.code)
			}
			if tc.code == "gpu-taken" && fault.Device != uuidA {
				t.Errorf("device %q", fault.Device)
			}
			exit, err := d.Wait(t.Context(), id)
			if v := containers.Classify(exit, nil, containers.Facts{}); err != nil || v.Class != containers.ClassInfrastructure {
				t.Errorf("%+v, %v", v, err)
			}
			if err := d.Remove(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			if pods, claims := c.has(); pods+claims != 0 {
				t.Errorf("%d pods and %d claims are left", pods, claims)
			}
		})
	}
}

// TestAbort: a start in progress is ended when the task is stopped; a running program is
// not changed.
func TestAbort(t *testing.T) {
	c := newCluster(t, toolImage)
	c.offer("node-1", uuidA)
	c.node("node-1")
	d := c.driver(t, Options{})
	defer d.Close()
	runs := begin(t, d, task("runs", "block:0"))
	c.mu.Lock()
	c.idle = true
	c.mu.Unlock()
	spec := task("x", "exit:0")
	spec.GPUs = []string{uuidA}
	id, err := d.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- d.Start(t.Context(), id) }()
	for gone := false; !gone; time.Sleep(5 * time.Millisecond) {
		c.mu.Lock()
		gone = !manifest.Gated(c.pods["x"])
		c.mu.Unlock()
	}
	for range 2 {
		if err := errors.Join(d.Abort(t.Context(), id), d.Abort(t.Context(), runs)); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("start: %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the start goes on")
	}
	exit, err := d.Wait(t.Context(), id)
	if v := containers.Classify(exit, nil, containers.Facts{Stopped: true}); err != nil || v.Class != containers.ClassStopped || !exit.Started.IsZero() {
		t.Errorf("%+v, %v", exit, err)
	}
	if list, err := d.List(t.Context(), nil); err != nil || len(list) != 2 || list[0].State == list[1].State {
		t.Errorf("%+v, %v: only the other one runs", list, err)
	}
}
