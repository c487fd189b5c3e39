package kubernetes

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"carma/containers"
)

// opened returns a driver that has read a cluster of two GPUs and has an open watch of pods.
func opened(t *testing.T) (*cluster, *Driver) {
	t.Helper()
	c := newCluster(t, toolImage)
	c.offer("node-1", "GPU-1", "GPU-2")
	d := c.driver(t, Options{})
	t.Cleanup(func() { _ = d.Close() })
	if _, err := d.Inventory(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, leave := d.watch.hints.subscribe(types.NamespacedName{Namespace: namespace, Name: "nobody"})
	t.Cleanup(leave)
	warm := begin(t, d, task("warm", "exit:0"))
	if _, err := d.Wait(t.Context(), warm); err != nil {
		t.Fatal(err)
	}
	return c, d
}

// lookouts counts the subscribers to a pod's changes.
func (d *Driver) lookouts(pod string) int {
	d.watch.hints.mu.Lock()
	defer d.watch.hints.mu.Unlock()
	return len(d.watch.hints.waiting[types.NamespacedName{Namespace: namespace, Name: pod}])
}

// ends reports a pod's program as ended, like a kubelet.
func (c *cluster) ends(name string, code int32) {
	c.change(name, func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodFailed
		p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: "Error", FinishedAt: metav1.Now()}}
	})
}

// breaks ends all watches, and answers all further requests with an error code.
func (c *cluster) breaks(code int) {
	c.mu.Lock()
	c.fault = func(*http.Request) int { return code }
	c.mu.Unlock()
	c.CloseClientConnections()
}

// kill ends a pod's program.
func (c *cluster) kill(t *testing.T, id string) {
	uid, _, _ := strings.Cut(id, ".")
	c.mu.Lock()
	of := c.ran[types.UID(uid)]
	c.mu.Unlock()
	if err := c.engine.Kill(t.Context(), of); err != nil {
		t.Fatal(err)
	}
}

// TestWaitGoesOn checks that a Wait sends no request to the cluster, neither after Start nor
// after an interrupted Wait.
func TestWaitGoesOn(t *testing.T) {
	c, d := opened(t)
	id := begin(t, d, task("x", "block:0"))
	all := c.requests()
	for range 3 { // a daemon calls Wait with a timeout, again and again
		over, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := d.Wait(over, id); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	c.ends("x", 3) // no Wait is running
	if exit, err := d.Wait(t.Context(), id); err != nil || exit.Code != 3 {
		t.Errorf("%+v, %v", exit, err)
	}
	if got := all(); len(got) > 0 {
		t.Errorf("%q is asked for", got)
	}
	if n := d.lookouts("x"); n > 0 {
		t.Errorf("%d look at it still", n)
	}
}

// TestRequestsOfATask checks all requests of a daemon for a running task from its launch on. It
// does not read again what Start or the watches have delivered.
func TestRequestsOfATask(t *testing.T) {
	c, d := opened(t)
	all := c.requests()
	spec := gpuTask("x")
	spec.Command = []string{"out:one", "block:0"}
	id := begin(t, d, spec)
	eventually(t, d, "the claim", func(is Inventory, err error) bool { return err == nil && len(is.Claims) == 1 })
	if got, err := d.Attached(t.Context(), id); err != nil || containers.CheckGPUs(spec, got, nil) != nil {
		t.Errorf("attached %+v, %v", got, err)
	}
	logged, first := make(chan error, 1), make(chan struct{})
	go func() {
		logged <- d.Logs(t.Context(), id, time.Time{}, true, func(time.Time, containers.Stream, []byte, bool) { close(first) })
	}()
	<-first
	if got, want := all(), []string{"GET lab/pods/x/log", "PATCH lab/pods/x", "POST lab/pods", "POST lab/resourceclaims"}; !slices.Equal(got, want) {
		t.Errorf("%q is asked for, want %q", got, want)
	}
	c.kill(t, id)
	if err := <-logged; err != nil {
		t.Error(err)
	}
	all = c.requests()
	if exit, err := d.Wait(t.Context(), id); err != nil || exit.Code != 137 {
		t.Errorf("%+v, %v", exit, err)
	}
	if got := all(); len(got) > 0 {
		t.Errorf("to wait asks for %q", got)
	}
	if pod := d.watch.handover.latest(id); pod != nil {
		t.Errorf("%s is kept after its end", pod.Name)
	}
}

// TestWaitAfterAGap checks that Wait finds a change that the watch did not deliver while nobody
// waited.
func TestWaitAfterAGap(t *testing.T) {
	c, d := opened(t)
	id := begin(t, d, task("x", "block:0"))
	c.mu.Lock()
	ended := c.pods["x"]
	ended.ResourceVersion, ended.Status.Phase = "1000", corev1.PodFailed
	ended.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error", FinishedAt: metav1.Now()}}
	c.mu.Unlock() // no watch delivers this change
	c.CloseClientConnections()
	if exit, err := d.Wait(t.Context(), id); err != nil || exit.Code != 3 {
		t.Errorf("%+v, %v", exit, err)
	}
}

// TestNothingIsLeft checks that the state that Start keeps for Wait is removed when the pod is
// stopped, when nobody calls Wait in time, and when the driver is closed.
func TestNothingIsLeft(t *testing.T) {
	_, d := opened(t)
	for what, end := range map[string]func(ctx context.Context, id string) error{"signal": d.Signal, "kill": d.Kill, "remove": d.Remove} {
		id := begin(t, d, task(what, "block:0"))
		if n := d.lookouts(what); n != 1 {
			t.Errorf("%s: %d look at it after its start", what, n)
		}
		if err := end(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		if n := d.lookouts(what); n > 0 {
			t.Errorf("%s: %d look at it still", what, n)
		}
	}
	var h handover
	gone := make(chan struct{})
	h.keep("late", &lookout{told: &hint{}, leave: func() { close(gone) }}, 1)
	<-gone
	if l := h.take("late"); l != nil {
		t.Error("what nobody took in time is still there")
	}
	left := 0
	more := func() *lookout { return &lookout{told: &hint{}, leave: func() { left++ }} }
	h.keep("x", more(), leftFor)
	h.keep("x", more(), leftFor) // the second lookout replaces the first
	h.end()
	h.keep("y", more(), leftFor)
	if left != 3 || len(h.left) > 0 {
		t.Errorf("%d of 3 have left, %d are kept", left, len(h.left))
	}
	id := begin(t, d, task("closed", "block:0"))
	_ = d.Close()
	if n := d.lookouts("closed"); n > 0 {
		t.Errorf("%d look at %s after Close", n, id)
	}
}
