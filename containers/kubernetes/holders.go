package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"carma/containers/kubernetes/manifest"
	"carma/internal/units"
)

// Claim is the part of a device that a claim has.
type Claim struct {
	Namespace, Name string
	Driver, Pool    string
	Device          string
	// Bytes is the amount of the device's memory, or negative if the claim has the whole device.
	Bytes int64
	// Ours is true if this daemon made the claim for a task.
	Ours bool
}

// Claims returns the parts of devices that all claims of the cluster have.
func (v *view) Claims(ctx context.Context) ([]Claim, error) {
	v.open()
	if err := v.claims.ready(ctx); err != nil {
		return nil, err
	}
	all, _ := v.claims.all()
	n := 0
	for _, c := range all {
		n += len(c.parts)
	}
	out := make([]Claim, 0, n)
	for _, c := range all {
		out = append(out, c.parts...)
	}
	return out, nil
}

// seenOf returns the cached part of a claim.
func (v *view) seenOf(c *resourcev1.ResourceClaim) seenClaim {
	seen := seenClaim{parts: v.partsOf(c)}
	if v.c.ns.Made(c.Namespace, c.Labels) {
		seen.granted = grantedOf(c)
	}
	return seen
}

// partsOf returns the parts of devices that a claim has.
func (v *view) partsOf(c *resourcev1.ResourceClaim) (out []Claim) {
	if c.Status.Allocation == nil {
		return nil
	}
	for _, r := range c.Status.Allocation.Devices.Results {
		if r.AdminAccess != nil && *r.AdminAccess {
			continue // the claim has admin access, and allocates nothing
		}
		out = append(out, Claim{
			Namespace: c.Namespace, Name: c.Name, Driver: r.Driver, Pool: r.Pool, Device: r.Device, Bytes: manifest.Consumed(r.ConsumedCapacity),
			Ours: v.c.ns.Made(c.Namespace, c.Labels),
		})
	}
	return out
}

// holders returns a text with the claims of others on the GPUs of a pod, or empty if there are
// none or they are unknown. If the pod wanted exactly one GPU, the text names it.
func (v *view) holders(ctx context.Context, pod *corev1.Pod) string {
	uuids := manifest.GPUsOf(pod)
	at, err := v.find(ctx, uuids)
	if err != nil || len(uuids) == 0 {
		return ""
	}
	text := ""
	if len(uuids) == 1 {
		text = "; wanted: " + uuids[0]
	}
	all, err := v.Claims(ctx)
	if err != nil {
		return text
	}
	var who []string
	for _, c := range all {
		if !c.Ours && slices.ContainsFunc(at, func(p manifest.Place) bool { return p.Driver == c.Driver && p.Pool == c.Pool && p.Device == c.Device }) {
			part := "all of it"
			if c.Bytes >= 0 {
				part = units.Bytes(c.Bytes).String()
			}
			who = append(who, fmt.Sprintf("%s/%s has %s", c.Namespace, c.Name, part))
		}
	}
	if len(who) > 0 {
		text += "; claim " + strings.Join(who[:min(len(who), 3)], ", claim ")
	}
	return text
}
