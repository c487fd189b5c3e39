package kubernetes

import (
	"context"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"carma/containers/kubernetes/manifest"
)

// view is the state of the cluster, from watches. The watches begin with the first
// [Driver.Inventory].
type view struct {
	c       *client
	begin   sync.Once
	nodes   mirror[seenNode]
	offers  mirror[offer]
	claims  mirror[seenClaim]
	reports mirror[Report]

	mu      sync.Mutex
	devices []Device // devices of the offers of the version made
	byUUID  map[string]manifest.Place
	made    uint64
}

// seenNode is a node, and the reason why it does not work, worded for one of its pods.
type seenNode struct {
	Node
	away string
}

// seenClaim contains the parts of devices in a claim. For a claim of this daemon it also
// contains the owner and the request.
type seenClaim struct {
	parts   []Claim
	granted *granted // nil if not kept
}

// open opens the watches.
func (v *view) open() {
	v.begin.Do(func() {
		v.nodes.what, v.nodes.keep = "read the cluster's nodes", func(o runtime.Object) seenNode {
			n := o.(*corev1.Node)
			return seenNode{Node{Name: n.Name, Boot: n.Status.NodeInfo.BootID, Closed: closedFor(n)}, notReady(n)}
		}
		v.offers.what, v.offers.keep = "read the cluster's GPUs", func(o runtime.Object) offer { return offerOf(o.(*resourcev1.ResourceSlice)) }
		v.claims.what, v.claims.keep = "read the cluster's claims", func(o runtime.Object) seenClaim { return v.seenOf(o.(*resourcev1.ResourceClaim)) }
		v.reports.what, v.reports.keep = "read what the nodes' agents tell", func(o runtime.Object) Report { return reportOf(o.(*coordinationv1.Lease)) }
		follow(v.c, &v.nodes, func() *rest.Request { return v.c.core.Get().Resource("nodes") }, "", &corev1.Node{}, func() runtime.Object { return &corev1.NodeList{} })
		follow(v.c, &v.offers, func() *rest.Request { return v.c.resource.Get().Resource("resourceslices") }, "", &resourcev1.ResourceSlice{}, func() runtime.Object { return &resourcev1.ResourceSliceList{} })
		follow(v.c, &v.claims, func() *rest.Request { return v.c.resource.Get().Resource("resourceclaims") }, "", &resourcev1.ResourceClaim{}, func() runtime.Object { return &resourcev1.ResourceClaimList{} })
		follow(v.c, &v.reports, func() *rest.Request { return v.c.coordination.Get().Namespace(v.c.ns.Own()).Resource("leases") }, agentLabel, &coordinationv1.Lease{}, func() runtime.Object { return &coordinationv1.LeaseList{} })
	})
}

// follow runs a mirror until the driver is closed.
func follow[T any](c *client, m *mirror[T], request func() *rest.Request, labels string, example runtime.Object, list func() runtime.Object) {
	m.is = map[string]T{}
	c.tasks.Go(func() { m.run(c.ctx, request, labels, example, list) })
}

// seen waits until all objects were read once.
func (v *view) seen(ctx context.Context) error {
	for _, ready := range []func(context.Context) error{v.nodes.ready, v.offers.ready, v.claims.ready, v.reports.ready} {
		if err := ready(ctx); err != nil {
			return err
		}
	}
	return nil
}

// gpus returns the offered devices, and their places by UUID.
func (v *view) gpus() ([]Device, map[string]manifest.Place) {
	all, version := v.offers.all()
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.made != version {
		v.devices, v.made = devicesOf(all), version
		v.byUUID = placesOf(v.devices)
	}
	return v.devices, v.byUUID
}
