package kubernetes

import (
	"context"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// memoryCapacity is the capacity of a device that many claims may share.
const memoryCapacity = "memory"

// Device is a GPU that a node offers.
type Device struct {
	UUID                 string
	Driver, Pool, Device string
	Node                 string
	Model                string // empty: its driver does not say
	Bytes                int64  // of memory
	// Shared: claims may share it by its memory.
	Shared bool
	// Taint says why the device takes no pods, in the words of who set it; empty: it
	// does.
	Taint string
}

// Node is a machine of the cluster.
type Node struct {
	Name, Boot string
	// Closed says why it takes no pods; empty: it does.
	Closed string
}

// Report is what a node's agent last told.
type Report struct {
	Node string
	// Count grows with each telling. Text is the agent's own.
	Count int64
	Text  string
}

// Inventory is the cluster as carma sees it.
type Inventory struct {
	Devices []Device
	Nodes   []Node
	Claims  []Claim
	Reports []Report
}

// fromCache lets the apiserver answer from its own memory. That lags a little.
func fromCache() *metav1.ListOptions { return &metav1.ListOptions{ResourceVersion: "0"} }

// Inventory reads the cluster once.
func (d *Driver) Inventory(ctx context.Context) (out Inventory, err error) {
	var nodes corev1.NodeList
	if err := d.core.Get().Resource("nodes").VersionedParams(fromCache(), parameters).Do(ctx).Into(&nodes); err != nil {
		return out, fail(ctx, "read the cluster's nodes", err)
	}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		out.Nodes = append(out.Nodes, Node{Name: n.Name, Boot: n.Status.NodeInfo.BootID, Closed: closedFor(n)})
	}
	var offered resourcev1.ResourceSliceList
	if err := d.resource.Get().Resource("resourceslices").VersionedParams(fromCache(), parameters).Do(ctx).Into(&offered); err != nil {
		return out, fail(ctx, "read the cluster's GPUs", err)
	}
	out.Devices = devicesOf(offered.Items)
	if out.Claims, err = d.Claims(ctx); err != nil {
		return out, err
	}
	out.Reports, err = d.reports(ctx)
	return out, err
}

// closedFor says why a node takes no new pods of carma's; empty: it does.
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
		return t.Effect != corev1.TaintEffectPreferNoSchedule && t.Key != tolerated
	})
	if i < 0 {
		return ""
	}
	t := n.Spec.Taints[i]
	return "its node " + n.Name + " has the taint " + strings.TrimSuffix(t.Key+"="+t.Value, "=") + ":" + string(t.Effect)
}

// devicesOf are the GPUs with a UUID in the newest generation of each pool, in a fixed
// order.
func devicesOf(all []resourcev1.ResourceSlice) []Device {
	newest := map[[2]string]int64{}
	for _, s := range all {
		key := [2]string{s.Spec.Driver, s.Spec.Pool.Name}
		newest[key] = max(newest[key], s.Spec.Pool.Generation)
	}
	var out []Device
	for _, s := range all {
		if s.Spec.NodeName == nil || s.Spec.Pool.Generation < newest[[2]string{s.Spec.Driver, s.Spec.Pool.Name}] {
			continue
		}
		for _, dev := range s.Spec.Devices {
			uuid := dev.Attributes[UUIDAttribute].StringValue
			if uuid == nil {
				continue
			}
			memory := dev.Capacity[memoryCapacity].Value
			g := Device{
				UUID: *uuid, Driver: s.Spec.Driver, Pool: s.Spec.Pool.Name, Device: dev.Name, Node: *s.Spec.NodeName,
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
			out = append(out, g)
		}
	}
	slices.SortFunc(out, func(a, b Device) int {
		if by := strings.Compare(a.Node, b.Node); by != 0 {
			return by
		}
		if by := len(a.Device) - len(b.Device); by != 0 { // gpu-9 before gpu-10
			return by
		}
		if by := strings.Compare(a.Device, b.Device); by != 0 {
			return by
		}
		return strings.Compare(a.UUID, b.UUID)
	})
	return out
}

// modelAttribute is a device's name for people, in the slices of NVIDIA's driver and
// of carma's.
const modelAttribute = "productName"

// Names of what agents tell.
const (
	agentLabel  = "carma.dev/node-agent"
	reportKey   = "carma.dev/gpus"
	agentPrefix = "carma-node-"
)

// reports are what the agents of the namespace tell.
func (d *Driver) reports(ctx context.Context) ([]Report, error) {
	var list coordinationv1.LeaseList
	options := fromCache()
	options.LabelSelector = agentLabel
	if err := d.coordination.Get().Namespace(d.namespace).Resource("leases").VersionedParams(options, parameters).Do(ctx).Into(&list); err != nil {
		return nil, fail(ctx, "read what the nodes' agents tell", err)
	}
	var out []Report
	for _, l := range list.Items {
		r := Report{Node: l.Annotations[agentLabel], Text: l.Annotations[reportKey]}
		if l.Spec.RenewTime != nil {
			r.Count = l.Spec.RenewTime.UnixMicro()
		}
		out = append(out, r)
	}
	return out, nil
}

// Tell publishes what a node's agent sees. text is read by [Driver.Inventory].
func (d *Driver) Tell(ctx context.Context, node, text string) error {
	what := "publish what the GPUs of node " + node + " show"
	now, seconds, name := metav1.NewMicroTime(time.Now()), int32(30), agentPrefix+node
	return d.lease(ctx, what, name, func(l *coordinationv1.Lease) bool {
		l.Labels = map[string]string{managedBy: ours, agentLabel: "yes"}
		l.Annotations = map[string]string{agentLabel: node, reportKey: text}
		l.Spec.HolderIdentity, l.Spec.RenewTime, l.Spec.LeaseDurationSeconds = &name, &now, &seconds
		return true
	})
}
