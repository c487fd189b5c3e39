package kubernetes

import (
	"cmp"
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"carma/containers/kubernetes/manifest"
)

// Device is a GPU that a node offers.
type Device struct {
	UUID                 string
	Driver, Pool, Device string
	Class                string // device class for its claims, or the driver's name if empty
	Node                 string
	Model                string // empty if its driver does not publish a model
	Bytes                int64  // size of the memory
	// Shared is true if claims may share the device by its memory.
	Shared bool
	// Taint is the text of the taint because of which the device takes no pods, or empty if it
	// takes pods.
	Taint string
}

// Node is a machine of the cluster.
type Node struct {
	Name, Boot string
	// Closed is the reason why the node takes no pods, or empty if it takes pods.
	Closed string
}

// Report is the last report of a node's agent.
type Report struct {
	Node string
	// Count grows with each report. Text has the agent's own format.
	Count int64
	Text  string
}

// Inventory is the state of the cluster from which carma schedules.
type Inventory struct {
	Devices []Device
	Nodes   []Node
	Claims  []Claim
	Reports []Report
}

// Inventory returns the state that the watches have delivered up to now. The first call reads
// everything once. Inventory returns an error if the cluster does not answer. Callers must not
// change the slices.
func (v *view) Inventory(ctx context.Context) (out Inventory, err error) {
	v.open()
	if err := v.seen(ctx); err != nil {
		return out, err
	}
	nodes, _ := v.nodes.all()
	for _, n := range nodes {
		out.Nodes = append(out.Nodes, n.Node)
	}
	out.Devices, _ = v.gpus()
	if out.Claims, err = v.Claims(ctx); err != nil {
		return out, err
	}
	out.Reports, _ = v.reports.all()
	return out, nil
}

// closedFor returns the reason why a node takes no new pods of carma, or empty if it takes
// pods.
func closedFor(n *corev1.Node) string {
	if n.DeletionTimestamp != nil {
		return "its node " + n.Name + " is being removed"
	}
	if why := notReady(n); why != "" {
		return "its " + why
	}
	if n.Spec.Unschedulable {
		return "its node " + n.Name + " is cordoned"
	}
	i := slices.IndexFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Effect != corev1.TaintEffectPreferNoSchedule && t.Key != manifest.GPUTaint
	})
	if i < 0 {
		return ""
	}
	t := n.Spec.Taints[i]
	return "its node " + n.Name + " has the taint " + strings.TrimSuffix(t.Key+"="+t.Value, "=") + ":" + string(t.Effect)
}

// offer is the content of a ResourceSlice: the GPUs that have a UUID.
type offer struct {
	driver, pool string
	generation   int64
	devices      []Device
}

func offerOf(s *resourcev1.ResourceSlice) offer {
	o := offer{driver: s.Spec.Driver, pool: s.Spec.Pool.Name, generation: s.Spec.Pool.Generation}
	if s.Spec.NodeName == nil {
		return o
	}
	for _, dev := range s.Spec.Devices {
		uuid := dev.Attributes[manifest.UUIDAttribute].StringValue
		class, usable := classOf(o.driver, &dev)
		if uuid == nil || !usable {
			continue
		}
		memory := dev.Capacity[manifest.Memory].Value
		g := Device{
			UUID: *uuid, Driver: o.driver, Class: class, Pool: o.pool, Device: dev.Name, Node: *s.Spec.NodeName,
			Bytes: memory.Value(), Shared: dev.AllowMultipleAllocations != nil && *dev.AllowMultipleAllocations,
		}
		if name := dev.Attributes[modelAttribute].StringValue; name != nil {
			g.Model = *name
		}
		for _, t := range dev.Taints {
			if t.Effect != resourcev1.DeviceTaintEffectNone {
				g.Taint = t.Key + ":" + string(t.Effect)
			}
		}
		o.devices = append(o.devices, g)
	}
	return o
}

// classOf returns the class of a device, as in [Device]. NVIDIA's driver has one class for each
// kind of device. A container cannot use the devices for virtual machines.
func classOf(driver string, dev *resourcev1.Device) (class string, usable bool) {
	const nvidia, kindAttribute = "gpu.nvidia.com", "type"
	kind := dev.Attributes[kindAttribute].StringValue
	switch {
	case driver != nvidia || kind == nil || *kind == "gpu":
		return "", true
	case *kind == "mig":
		return "mig.nvidia.com", true
	}
	return "", false
}

// devicesOf returns the GPUs in the newest generation of each pool, in a fixed order.
func devicesOf(all []offer) []Device {
	newest := map[[2]string]int64{}
	for _, o := range all {
		key := [2]string{o.driver, o.pool}
		newest[key] = max(newest[key], o.generation)
	}
	var out []Device
	for _, o := range all {
		if o.generation == newest[[2]string{o.driver, o.pool}] {
			out = append(out, o.devices...)
		}
	}
	slices.SortFunc(out, func(a, b Device) int {
		return cmp.Or(
			strings.Compare(a.Node, b.Node),
			len(a.Device)-len(b.Device), // gpu-9 before gpu-10
			strings.Compare(a.Device, b.Device),
			strings.Compare(a.UUID, b.UUID),
		)
	})
	return out
}

// modelAttribute is the attribute with a device's product name, in the slices of NVIDIA's
// driver and of carma's.
const modelAttribute = "productName"
