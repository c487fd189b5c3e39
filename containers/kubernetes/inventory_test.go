package kubernetes

import (
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// TestInventory checks the inventory of a cluster with objects of this daemon and of others.
func TestInventory(t *testing.T) {
	c := newCluster(t, toolImage)
	c.offer("node-1", "GPU-a", "GPU-b")
	c.offer("node-2", "GPU-c")
	old := Slice("node-2", "Test GPU", []string{"GPU-old"}, 80<<30)
	old.Name, old.Spec.Pool.Generation = "old", 0
	card := Slice("node-3", "NVIDIA H100", []string{"GPU-d"}, 80<<30)
	card.Spec.Driver, card.Spec.Devices[0].AllowMultipleAllocations = "gpu.nvidia.com", nil
	card.Spec.Devices[0].Taints = []resourcev1.DeviceTaint{{Key: "xid", Effect: resourcev1.DeviceTaintEffectNoSchedule}}
	c.slices = append(c.slices, old, card)
	c.node("node-1")
	c.node("node-2", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	c.node("node-3", func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "nvidia.com/gpu", Effect: corev1.TaintEffectNoSchedule}, {Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule}}
	})
	c.node("node-4", func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "team", Value: "b", Effect: corev1.TaintEffectNoSchedule}}
	})
	c.node("node-5", func(n *corev1.Node) {
		n.Status.Conditions[0].Status, n.Status.Conditions[0].Message = corev1.ConditionUnknown, "silent"
	})
	c.foreign = append(c.foreign, foreignClaim(50<<30))
	d := c.driver(t, Options{})
	defer d.Close()
	spec := task("x", "block:0")
	spec.GPUs, spec.GPUMemory = []string{"GPU-a"}, 10<<30
	begin(t, d, spec)
	if _, err := d.Tell(t.Context(), "node-1", "text", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Tell(t.Context(), "node-1", "more", nil); err != nil {
		t.Fatal(err)
	}
	got := inventoryOnce(t, d, func(i Inventory) bool { // the watches also deliver the driver's own changes
		return len(i.Claims) == 2 && len(i.Reports) == 1 && i.Reports[0].Text == "more"
	})
	device := func(uuid, node, name string) Device {
		return Device{UUID: uuid, Driver: SimulatedDriver, Pool: node, Device: name, Node: node, Model: "Test GPU", Bytes: 80 << 30, Shared: true}
	}
	nvidia := Device{UUID: "GPU-d", Driver: "gpu.nvidia.com", Pool: "node-3", Device: "gpu-0", Node: "node-3", Model: "NVIDIA H100", Bytes: 80 << 30, Taint: "xid:NoSchedule"}
	if want := []Device{device("GPU-a", "node-1", "gpu-0"), device("GPU-b", "node-1", "gpu-1"), device("GPU-c", "node-2", "gpu-0"), nvidia}; !reflect.DeepEqual(got.Devices, want) {
		t.Errorf("devices %+v", got.Devices)
	}
	closed := map[string]string{}
	for _, n := range got.Nodes {
		closed[n.Name] = n.Closed
	}
	if want := map[string]string{"node-1": "", "node-2": "its node node-2 is cordoned", "node-3": "", "node-4": "its node node-4 has the taint team=b:NoSchedule", "node-5": "its node node-5 is not ready: silent"}; !reflect.DeepEqual(closed, want) || got.Nodes[0].Boot != "boot-node-1" {
		t.Errorf("nodes %v", closed)
	}
	if want := []Claim{
		{Namespace: namespace, Name: "x", Driver: SimulatedDriver, Pool: "node-1", Device: "gpu-0", Bytes: 10 << 30, Ours: true},
		{Namespace: "other", Name: "train", Driver: SimulatedDriver, Pool: "node-1", Device: "gpu-0", Bytes: 50 << 30},
	}; !reflect.DeepEqual(got.Claims, want) {
		t.Errorf("claims %+v", got.Claims)
	}
	if len(got.Reports) != 1 || got.Reports[0].Node != "node-1" || got.Reports[0].Text != "more" || got.Reports[0].Count == 0 {
		t.Errorf("reports %+v", got.Reports)
	}
}

// inventoryOnce returns the inventory as soon as is accepts it, or the last one after some
// seconds.
func inventoryOnce(t *testing.T, d *Driver, is func(Inventory) bool) Inventory {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		got, err := d.Inventory(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if is(got) || time.Now().After(end) {
			return got
		}
	}
}
