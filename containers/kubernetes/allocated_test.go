package kubernetes

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carma/containers"
)

// caughtUp waits until a driver has received all changes of slices and claims.
func (c *cluster) caughtUp(t *testing.T, d *Driver) {
	t.Helper()
	c.offer("marker", "GPU-marker")
	c.alter(func() {
		marker := resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "marker", Name: "marker"}}
		marker.Status.Allocation = &resourcev1.AllocationResult{}
		marker.Status.Allocation.Devices.Results = []resourcev1.DeviceRequestAllocationResult{{Device: "marker"}}
		c.foreign = append(c.foreign, marker)
	})
	eventually(t, d, "the latest", func(is Inventory, err error) bool {
		return err == nil && slices.ContainsFunc(is.Devices, func(g Device) bool { return g.UUID == "GPU-marker" }) &&
			slices.ContainsFunc(is.Claims, func(c Claim) bool { return c.Name == "marker" })
	})
}

// TestAttachedByStreams checks that a pod's GPUs are read from the cluster unless the watches
// prove that this pod has the requested GPUs. So a wrong GPU is detected in any case.
func TestAttachedByStreams(t *testing.T) {
	for what, row := range map[string]struct {
		alter func(*cluster, *resourcev1.ResourceClaim)
		asks  bool
		gpu   string
	}{
		"as carma asked": {func(*cluster, *resourcev1.ResourceClaim) {}, false, "GPU-1"},
		"another GPU": {func(_ *cluster, claim *resourcev1.ResourceClaim) {
			claim.Status.Allocation.Devices.Results[0].Device = "gpu-1"
		}, true, "GPU-2"},
		"of another pod": {func(_ *cluster, claim *resourcev1.ResourceClaim) { claim.Status.ReservedFor[0].UID = "another" }, true, "GPU-1"},
		"of nobody":      {func(_ *cluster, claim *resourcev1.ResourceClaim) { claim.Status.ReservedFor = nil }, true, "GPU-1"},
		"pinned to none": {func(_ *cluster, claim *resourcev1.ResourceClaim) {
			claim.Spec.Devices.Requests[0].Exactly.Selectors = nil
		}, true, "GPU-1"},
		"not carma's": {func(_ *cluster, claim *resourcev1.ResourceClaim) { claim.Labels = nil }, true, "GPU-1"},
		"two GPUs for one": {func(_ *cluster, claim *resourcev1.ResourceClaim) {
			results := &claim.Status.Allocation.Devices.Results
			*results = append(*results, (*results)[0])
		}, true, "GPU-1"},
		"a GPU that is gone": {func(c *cluster, _ *resourcev1.ResourceClaim) { c.slices = nil }, true, "GPU-1"},
	} {
		t.Run(what, func(t *testing.T) {
			c, d := opened(t)
			id := begin(t, d, gpuTask("x"))
			c.alter(func() {
				row.alter(c, c.claims["x"])
			})
			c.caughtUp(t, d)
			all := c.requests()
			got, err := d.Attached(t.Context(), id)
			if err != nil || !slices.Equal(got.Requested, []string{row.gpu}) || got.Visible != row.gpu {
				t.Errorf("%+v, %v, want %s", got, err, row.gpu)
			}
			if asked := countOf(all(), "GET lab/resourceclaims/x") == 1; asked != row.asks {
				t.Errorf("%q is asked for", all())
			}
		})
	}
}

// TestLogsAfterAStart checks that a followed log begins with the last state of the pod that
// Start has read. If that pod has changed and no watch has reported it, all output is still
// read. A log that is not followed reads the pod first.
func TestLogsAfterAStart(t *testing.T) {
	var lines []string
	read := func(d *Driver, id string, follow bool) error {
		lines = nil
		return d.Logs(t.Context(), id, time.Time{}, follow, func(_ time.Time, _ containers.Stream, text []byte, _ bool) { lines = append(lines, string(text)) })
	}
	for _, follow := range []bool{true, false} {
		c, d := opened(t)
		id := begin(t, d, task("x", "out:one", "block:0"))
		c.mu.Lock()
		ended := c.pods["x"].DeepCopy()
		ended.ResourceVersion, ended.Status.Phase = "1000", corev1.PodFailed
		ended.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, FinishedAt: metav1.Now()}}
		c.pods["x"] = ended
		c.mu.Unlock()
		c.kill(t, id)
		if err := read(d, id, follow); err != nil || !slices.Equal(lines, []string{"one"}) {
			t.Errorf("it has ended (followed: %v): %q, %v", follow, lines, err)
		}
		id = begin(t, d, task("y", "out:one", "block:0"))
		c.mu.Lock()
		delete(c.pods, "y")
		c.mu.Unlock()
		if err := read(d, id, follow); !errors.Is(err, containers.ErrNotFound) || len(lines) > 0 {
			t.Errorf("it is gone (followed: %v): %q, %v", follow, lines, err)
		}
		id = begin(t, d, task("z", "out:one", "block:0"))
		c.mu.Lock()
		c.ran["another"] = c.ran[c.pods["z"].UID]
		c.pods["z"].UID = "another"
		c.mu.Unlock()
		if err := read(d, id, false); !errors.Is(err, containers.ErrNotFound) {
			t.Errorf("another has its name: %q, %v", lines, err)
		}
	}
}
