package kubernetes

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"

	"carma/containers/kubernetes/manifest"
)

// nvidiaSlice returns a slice as NVIDIA's DRA driver 0.5.0 published it for an H100 with
// --consumable-shares=memory. A MIG instance and a card for virtual machines are added, as in
// the driver's source.
func nvidiaSlice(t *testing.T) resourcev1.ResourceSlice {
	t.Helper()
	b, err := os.ReadFile("testdata/nvidia-0.5.0.json")
	if err != nil {
		t.Fatal(err)
	}
	var s resourcev1.ResourceSlice
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestNVIDIA checks that a GPU of NVIDIA's driver and a MIG instance are shared by their
// memory, each through claims of its own class. A GPU for virtual machines is not listed,
// because no claim of carma can get it.
func TestNVIDIA(t *testing.T) {
	c := newCluster(t, toolImage)
	c.node("node-1")
	c.slices = append(c.slices, nvidiaSlice(t))
	d := c.driver(t, Options{})
	defer d.Close()
	const card, mig = "GPU-5ca1ab1e-0000-4000-8000-000000000001", "MIG-5ca1ab1e-0000-4000-8000-000000000002"
	all, err := d.Inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []Device{
		{UUID: card, Driver: "gpu.nvidia.com", Pool: "node-1", Device: "gpu-0", Node: "node-1", Model: "NVIDIA H100 80GB HBM3", Bytes: 81559 << 20, Shared: true},
		{UUID: mig, Driver: "gpu.nvidia.com", Class: "mig.nvidia.com", Pool: "node-1", Device: "gpu-1-mig-1g10gb-19-0", Node: "node-1", Model: "NVIDIA H100 80GB HBM3", Bytes: 9856 << 20, Shared: true},
	}
	if !reflect.DeepEqual(all.Devices, want) {
		t.Errorf("devices %+v", all.Devices)
	}
	for uuid, class := range map[string]string{card: "gpu.nvidia.com", mig: "mig.nvidia.com"} {
		spec := task("of-"+class, "block:0")
		spec.GPUs, spec.GPUMemory = []string{uuid}, 4<<30
		id := begin(t, d, spec)
		c.mu.Lock()
		claim := c.claims[spec.Name].DeepCopy()
		c.mu.Unlock()
		r := claim.Spec.Devices.Requests[0].Exactly
		if r.Capacity == nil {
			t.Fatalf("%s: the claim asks for no memory: %+v", uuid, r)
		}
		if memory := r.Capacity.Requests[manifest.Memory]; r.DeviceClassName != class || memory.Value() != 4<<30 || r.Selectors[0].CEL.Expression != `device.attributes["gpu.nvidia.com"].uuid == "`+uuid+`"` {
			t.Errorf("%s: %+v", uuid, r)
		}
		if a, err := d.Attached(t.Context(), id); err != nil || a.Visible != uuid {
			t.Errorf("%s: attached %+v, %v", uuid, a, err)
		}
		if got := manifest.PinnedTo(&claim.Spec.Devices.Requests[0]); got != uuid {
			t.Errorf("%s: pinned to %q", uuid, got)
		}
	}
}
