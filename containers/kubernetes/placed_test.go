package kubernetes

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"carma/containers"
	"carma/containers/kubernetes/manifest"
)

// TestPlaced checks that a start lets the next starts begin once the scheduler has bound the
// pod or reported that it cannot. It does not do so earlier, and does not wait until the pod
// runs.
func TestPlaced(t *testing.T) {
	for what, place := range map[string]func(*corev1.Pod){
		"bound": func(p *corev1.Pod) { p.Spec.NodeName = "node-1" },
		"turned down": func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available"}}
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, toolImage)
			c.offer("node-1", uuidA)
			c.node("node-1")
			c.unscheduled = true
			d := c.driver(t, Options{ClaimPatience: time.Minute, NodePatience: time.Minute})
			defer d.Close()
			spec := task("x", "exit:0")
			spec.GPUs, spec.GPUMemory = []string{uuidA}, 30<<30
			id, err := d.Create(t.Context(), spec)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			placed, over := make(chan struct{}), make(chan error, 1)
			go func() { over <- d.Start(containers.WithPlaced(ctx, func() { close(placed) }), id) }()
			lifted := func() bool {
				pod, err := d.c.pod(t.Context(), "look", id)
				return err == nil && !manifest.Gated(pod)
			}
			for !lifted() {
				time.Sleep(time.Millisecond)
			}
			select {
			case <-placed:
				t.Error("it told before the scheduler did anything")
			case <-time.After(20 * time.Millisecond):
			}
			c.change("x", place)
			<-placed
			cancel()
			if err := <-over; err == nil {
				t.Error("it has started")
			}
		})
	}
}
