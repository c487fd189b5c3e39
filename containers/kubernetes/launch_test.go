package kubernetes

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"carma/containers"
	"carma/containers/kubernetes/manifest"
)

// requests records the further requests to a cluster, without watches. The returned function
// lists each request once, sorted.
func (c *cluster) requests() func() []string {
	var mu sync.Mutex
	var all []string
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fault = func(r *http.Request) int {
		mu.Lock()
		defer mu.Unlock()
		if r.URL.Query().Get("watch") == "" {
			all = append(all, r.Method+" "+r.URL.Path[strings.LastIndex(r.URL.Path, "/namespaces/")+len("/namespaces/"):])
		}
		return 0
	}
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Sorted(slices.Values(all))
	}
}

// gpuTask returns the spec of a task on GPU-1.
func gpuTask(name string) containers.Spec {
	spec := task(name, "exit:0")
	spec.GPUs, spec.GPUMemory, spec.Attach = []string{"GPU-1"}, 1<<30, containers.AttachSimulated
	return spec
}

// TestRequestsOfALaunch checks that a launch sends three requests to the cluster. The driver
// reads neither its own objects nor state that the watches deliver.
func TestRequestsOfALaunch(t *testing.T) {
	c := newCluster(t, toolImage)
	c.offer("node-1", "GPU-1")
	d := c.driver(t, Options{})
	defer d.Close()
	warm, err := d.Create(t.Context(), gpuTask("warm")) // the watches begin with this call
	if err == nil {
		err = d.Start(t.Context(), warm)
	}
	if err == nil {
		_, err = d.Wait(t.Context(), warm)
	}
	if err != nil {
		t.Fatal(err)
	}
	// A subscriber keeps the watch open.
	_, leave := d.watch.hints.subscribe(types.NamespacedName{Namespace: namespace, Name: "nobody"})
	defer leave()
	all := c.requests()
	id, err := d.Create(t.Context(), gpuTask("x"))
	if err == nil {
		err = d.Start(t.Context(), id)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got, want := all(), []string{"PATCH lab/pods/x", "POST lab/pods", "POST lab/resourceclaims"}; !slices.Equal(got, want) {
		t.Errorf("a launch asks for %q, want %q", got, want)
	}
	// The scheduler would otherwise add it by another request.
	c.mu.Lock()
	defer c.mu.Unlock()
	if got := c.claims["x"].Finalizers; !slices.Equal(got, []string{resourcev1.Finalizer}) {
		t.Errorf("the claim has %q", got)
	}
}

// TestChangedBeforeStart checks that Start notices changes of a pod since Create.
func TestChangedBeforeStart(t *testing.T) {
	for _, row := range []struct {
		what   string
		change func(*cluster, *corev1.Pod)
		gone   bool
	}{
		{"deleted", func(c *cluster, pod *corev1.Pod) {
			now := metav1.Now()
			pod.DeletionTimestamp = &now
			c.tell("MODIFIED", pod)
		}, true},
		{"another of its name", func(c *cluster, pod *corev1.Pod) {
			pod.UID = "another"
			c.tell("MODIFIED", pod)
		}, true},
		{"a label more", func(c *cluster, pod *corev1.Pod) {
			pod.Labels["site"] = "x"
			c.tell("MODIFIED", pod)
		}, false},
	} {
		c := newCluster(t, toolImage)
		c.offer("node-1", "GPU-1")
		d := c.driver(t, Options{})
		id, err := d.Create(t.Context(), gpuTask("x"))
		if err != nil {
			t.Fatal(err)
		}
		c.mu.Lock()
		row.change(c, c.pods["x"])
		c.mu.Unlock()
		if err := d.Start(t.Context(), id); errors.Is(err, containers.ErrNotFound) != row.gone || !row.gone && err != nil {
			t.Errorf("%s: %v", row.what, err)
		}
		d.Close()
	}
}

// TestMadeInAFullNamespace checks that an existing pod is used although its namespace has no
// room for another pod. The daemon that made the pod died before it got the answer.
func TestMadeInAFullNamespace(t *testing.T) {
	c := newCluster(t, toolImage)
	c.offer("node-1", "GPU-1")
	first := c.driver(t, Options{})
	id, err := first.Create(t.Context(), gpuTask("x"))
	if err != nil {
		t.Fatal(err)
	}
	first.Close()
	c.mu.Lock()
	c.admit = func(*corev1.Pod) (int, string) {
		return http.StatusForbidden, "exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1"
	}
	c.mu.Unlock()
	d := c.driver(t, Options{})
	defer d.Close()
	if again, err := d.Create(t.Context(), gpuTask("x")); err != nil || again != id {
		t.Errorf("%q, %v; want %q", again, err, id)
	}
}

// TestNewer checks that a late event does not give a waiter an older state.
func TestNewer(t *testing.T) {
	c := newCluster(t, toolImage)
	c.offer("node-1", "GPU-1")
	d := c.driver(t, Options{})
	defer d.Close()
	id, err := d.Create(t.Context(), gpuTask("x"))
	if err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	old := c.pods["x"].DeepCopy()
	c.mu.Unlock()
	looks := []string{}
	err = d.watch.follow(t.Context(), "look", id, func(pod *corev1.Pod) (bool, error) {
		looks = append(looks, pod.Labels["step"])
		switch pod.Labels["step"] {
		case "":
			c.mu.Lock()
			defer c.mu.Unlock()
			c.pods["x"].Labels["step"] = "1"
			c.tell("MODIFIED", c.pods["x"])
		case "1":
			d.watch.hints.wake(old, false) // a late event
			c.mu.Lock()
			defer c.mu.Unlock()
			c.pods["x"].Labels["step"] = "2"
			c.tell("MODIFIED", c.pods["x"])
		}
		return pod.Labels["step"] == "2", nil
	})
	if err != nil || slices.Contains(looks[slices.Index(looks, "1"):], "") {
		t.Errorf("%q, %v", looks, err)
	}
	one, two := &corev1.Pod{}, &corev1.Pod{}
	one.ResourceVersion, two.ResourceVersion = "99", "100"
	if newer(one, two) || !newer(two, one) || newer(one, one) {
		t.Error("99 and 100")
	}
}

// TestTurn checks that with one turn, pods are made one after the other. A call of Create that
// waits for the deletion of an old claim gives its turn up, and does not delay others.
func TestTurn(t *testing.T) {
	c := newCluster(t, toolImage)
	c.offer("node-1", "GPU-1")
	d := c.driver(t, Options{})
	defer d.Close()
	d.making = make(chan struct{}, 1)
	asked := make(chan struct{}, 100)
	c.mu.Lock()
	c.claims["old"] = &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
		Name: "old", Namespace: namespace, Labels: map[string]string{manifest.ManagedBy: manifest.Owner}, OwnerReferences: []metav1.OwnerReference{{UID: "another"}},
	}}
	c.fault = func(r *http.Request) int {
		if r.Method == http.MethodDelete && strings.HasSuffix(r.URL.Path, "/resourceclaims/old") {
			asked <- struct{}{}
			return http.StatusOK // the claim continues to exist
		}
		return 0
	}
	c.mu.Unlock()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { _, err := d.Create(ctx, gpuTask("old")); ended <- err }()
	<-asked
	if _, err := d.Create(t.Context(), gpuTask("next")); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the one that waits: %v", err)
	}
	d.making <- struct{}{} // another caller has the turn
	if _, err := d.Create(ctx, gpuTask("late")); !errors.Is(err, context.Canceled) {
		t.Errorf("without a turn: %v", err)
	}
}
