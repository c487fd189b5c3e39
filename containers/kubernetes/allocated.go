package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"

	"carma/containers"
	"carma/containers/kubernetes/manifest"
)

// Attached returns the UUIDs of the GPUs that the scheduler allocated to the pod. It sends a
// request to the cluster only if the watches do not prove which GPUs these are.
func (d *Driver) Attached(ctx context.Context, id string) (containers.Attachment, error) {
	what := "look at pod " + d.c.ns.Short(id)
	pod := d.watch.handover.latest(id)
	if pod == nil {
		var err error
		if pod, err = d.c.pod(ctx, what, id); err != nil {
			return containers.Attachment{}, err
		}
	}
	name := manifest.ClaimOf(pod)
	if name == "" {
		return containers.Attachment{Visible: "void"}, nil
	}
	at := types.NamespacedName{Namespace: pod.Namespace, Name: name}
	if uuids := d.view.toldAllocated(at, pod); uuids != nil {
		return attachment(uuids), nil
	}
	var claim resourcev1.ResourceClaim
	if err := d.c.claims(d.c.resource.Get(), at).Do(ctx).Into(&claim); err != nil {
		return containers.Attachment{}, fail(ctx, what, err)
	}
	if claim.Status.Allocation == nil {
		return containers.Attachment{}, fmt.Errorf("%s: %w: its claim has no GPU yet", what, containers.ErrNotFound)
	}
	uuids, err := d.view.allocated(ctx, &claim)
	return attachment(uuids), err
}

func attachment(uuids []string) containers.Attachment {
	return containers.Attachment{Visible: strings.Join(uuids, ","), Requested: uuids}
}

// granted is the cached part of a claim of this daemon that the scheduler has allocated.
type granted struct {
	pod   types.UID // the only pod that the claim is reserved for
	wants []string  // the UUID that each request names
	has   []int     // the device that each request got
}

// grantedOf returns the cached part of a claim, or nil if the claim is not this daemon's or has
// another form than this daemon's claims.
func grantedOf(c *resourcev1.ResourceClaim) *granted {
	requests := c.Spec.Devices.Requests
	if c.Status.Allocation == nil || len(c.Status.ReservedFor) != 1 || len(c.Status.Allocation.Devices.Results) != len(requests) {
		return nil
	}
	g := &granted{pod: c.Status.ReservedFor[0].UID}
	for i := range requests {
		uuid := manifest.PinnedTo(&requests[i])
		part := slices.IndexFunc(c.Status.Allocation.Devices.Results, func(r resourcev1.DeviceRequestAllocationResult) bool {
			return r.Request == requests[i].Name && (r.AdminAccess == nil || !*r.AdminAccess)
		})
		if uuid == "" || part < 0 {
			return nil
		}
		g.wants, g.has = append(g.wants, strings.Clone(uuid)), append(g.has, part)
	}
	return g
}

// toldAllocated returns the UUIDs of the GPUs of a pod's claim from the watches, or nil if the
// watches do not prove them. They do if the claim is reserved for this pod and each of its
// devices has the UUID that the claim's request names. A claim's requests never change, so the
// scheduler cannot have changed the result since then. In all other cases the caller reads the
// claim from the cluster, because a watch may be late.
func (v *view) toldAllocated(at types.NamespacedName, pod *corev1.Pod) []string {
	v.open()
	claim, ok := v.claims.one(at.String())
	if !ok || claim.granted == nil || claim.granted.pod != pod.UID {
		return nil
	}
	if v.offers.late() {
		return nil
	}
	_, known := v.gpus()
	for i, uuid := range claim.granted.wants {
		part := claim.parts[claim.granted.has[i]]
		if p, ok := known[uuid]; !ok || p.Driver != part.Driver || p.Pool != part.Pool || p.Device != part.Device {
			return nil
		}
	}
	return slices.Clone(claim.granted.wants)
}

// allocated returns the UUIDs of a claim's devices, in the order of its requests.
func (v *view) allocated(ctx context.Context, claim *resourcev1.ResourceClaim) ([]string, error) {
	v.open()
	if err := v.offers.ready(ctx); err != nil {
		return nil, err
	}
	_, known := v.gpus()
	uuids := uuidsOf(claim, known)
	if slices.Contains(uuids, "") {
		known, err := v.readPlaces(ctx)
		return uuidsOf(claim, known), err
	}
	return uuids, nil
}

// uuidsOf returns the UUIDs of a claim's devices. A node may not offer a device at the moment,
// for example while its driver restarts. Then the UUID is the one that the request names,
// because the scheduler can have allocated no other device.
func uuidsOf(claim *resourcev1.ResourceClaim, known map[string]manifest.Place) []string {
	uuids := make([]string, len(claim.Spec.Devices.Requests))
	for _, r := range claim.Status.Allocation.Devices.Results {
		i := slices.IndexFunc(claim.Spec.Devices.Requests, func(q resourcev1.DeviceRequest) bool { return q.Name == r.Request })
		if i < 0 {
			continue
		}
		for uuid, p := range known {
			if p.Driver == r.Driver && p.Pool == r.Pool && p.Device == r.Device {
				uuids[i] = uuid
			}
		}
		if uuids[i] == "" {
			uuids[i] = manifest.PinnedTo(&claim.Spec.Devices.Requests[i])
		}
	}
	return uuids
}
