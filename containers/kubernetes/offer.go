package kubernetes

import (
	"context"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"carma/containers"
)

// Offer publishes the GPUs of a node. They replace the GPUs that were published under the
// slice's name before.
func (a *agents) Offer(ctx context.Context, slice resourcev1.ResourceSlice) error {
	what := "publish the GPUs of node " + slice.Name
	err := a.c.resource.Post().Resource("resourceslices").Body(&slice).Do(ctx).Error()
	if !apierrors.IsAlreadyExists(err) {
		return fail(ctx, what, err)
	}
	var old resourcev1.ResourceSlice
	if err := a.c.resource.Get().Resource("resourceslices").Name(slice.Name).Do(ctx).Into(&old); err != nil {
		return fail(ctx, what, err)
	}
	old.Spec.Devices = slice.Spec.Devices
	old.Spec.Pool.Generation++
	return fail(ctx, what, a.c.resource.Put().Resource("resourceslices").Name(slice.Name).Body(&old).Do(ctx).Error())
}

// Withdraw takes a slice back.
func (a *agents) Withdraw(ctx context.Context, name string) error {
	err := a.c.resource.Delete().Resource("resourceslices").Name(name).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fail(ctx, "take back the GPUs "+name, err)
}

// Given is a device of one driver that a claim got.
type Given struct {
	Request, Pool, Device string
	// Share identifies a claim among the claims that share the device, or is empty if the
	// device is not shared.
	Share string
}

// Given returns the devices of a driver that a claim got.
func (a *agents) Given(ctx context.Context, driver, namespace, name, uid string) ([]Given, error) {
	what := fmt.Sprintf("read claim %s/%s", namespace, name)
	var claim resourcev1.ResourceClaim
	if err := a.c.resource.Get().Namespace(namespace).Resource("resourceclaims").Name(name).Do(ctx).Into(&claim); err != nil {
		return nil, fail(ctx, what, err)
	}
	if string(claim.UID) != uid || claim.Status.Allocation == nil {
		return nil, fmt.Errorf("%s: %w: it is another one, or not allocated", what, containers.ErrNotFound)
	}
	var out []Given
	for _, r := range claim.Status.Allocation.Devices.Results {
		if r.Driver != driver {
			continue
		}
		g := Given{Request: r.Request, Pool: r.Pool, Device: r.Device}
		if r.ShareID != nil {
			g.Share = string(*r.ShareID)
		}
		out = append(out, g)
	}
	return out, nil
}
