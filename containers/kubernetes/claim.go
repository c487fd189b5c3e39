package kubernetes

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"carma/containers"
	"carma/containers/kubernetes/manifest"
)

// claims makes and deletes the claims of pods.
type claims struct {
	c    *client
	view *view
}

// find returns the devices of these GPUs, which must be on one node. It reads from the cluster
// if the watches have not shown a GPU yet.
func (v *view) find(ctx context.Context, uuids []string) ([]manifest.Place, error) {
	if len(uuids) == 0 {
		return nil, nil
	}
	v.open()
	if err := v.offers.ready(ctx); err != nil {
		return nil, err
	}
	_, known := v.gpus()
	unknown := func(u string) bool { _, ok := known[u]; return !ok }
	if slices.ContainsFunc(uuids, unknown) {
		var err error
		if known, err = v.readPlaces(ctx); err != nil {
			return nil, err
		}
	}
	out := make([]manifest.Place, len(uuids))
	for i, u := range uuids {
		if unknown(u) {
			text := "no node of the cluster offers the GPU " + u
			return nil, &containers.StartFault{Scope: containers.ScopeGPU, Code: "gpu-unknown", Device: u, Cause: text,
				Remedy: "kubectl get resourceslices shows the GPUs; see that the DRA driver runs on the node", Text: text}
		}
		if out[i] = known[u]; out[i].Node != out[0].Node {
			return nil, fmt.Errorf("%w: GPUs of one task on two nodes, %s and %s", containers.ErrInvalid, out[0].Node, out[i].Node)
		}
	}
	return out, nil
}

// readPlaces reads the slices of all drivers.
func (v *view) readPlaces(ctx context.Context) (map[string]manifest.Place, error) {
	var list resourcev1.ResourceSliceList
	if err := v.c.resource.Get().Resource("resourceslices").Do(ctx).Into(&list); err != nil {
		return nil, fail(ctx, "read the cluster's GPUs", err)
	}
	var all []offer
	for i := range list.Items {
		all = append(all, offerOf(&list.Items[i]))
	}
	return placesOf(devicesOf(all)), nil
}

func placesOf(devices []Device) map[string]manifest.Place {
	found := make(map[string]manifest.Place, len(devices))
	for _, dev := range devices {
		found[dev.UUID] = manifest.Place{Node: dev.Node, Driver: dev.Driver, Class: cmp.Or(dev.Class, dev.Driver), Pool: dev.Pool, Device: dev.Device, Shared: dev.Shared}
	}
	return found
}

// book makes the claim. If a claim with this name exists and belongs to the pod, book keeps it
// if same returns true or is nil. It deletes any other claim with this name, which is left from
// an earlier pod, and calls waits before it waits for the deletion.
func (cl *claims) book(ctx context.Context, what string, claim *resourcev1.ResourceClaim, same func(old *resourcev1.ResourceClaim) bool, waits func()) error {
	at := types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}
	for {
		err := cl.c.resource.Post().Namespace(claim.Namespace).Resource("resourceclaims").Body(claim).Do(ctx).Error()
		if err == nil || !apierrors.IsAlreadyExists(err) {
			return cl.c.failIn(ctx, what, claim.Namespace, err)
		}
		var old resourcev1.ResourceClaim
		err = cl.c.claims(cl.c.resource.Get(), at).Do(ctx).Into(&old)
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			return fail(ctx, what, err)
		case old.DeletionTimestamp == nil && slices.ContainsFunc(old.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == claim.OwnerReferences[0].UID }) && (same == nil || same(&old)):
			return nil
		case old.Labels[manifest.ManagedBy] != manifest.Owner:
			return fmt.Errorf("%s: %w: the claim %s is not carma's; it is left alone", what, containers.ErrTaken, claim.Name)
		}
		if err := cl.unbook(ctx, what, at); err != nil {
			return err
		}
		waits()
		if err := pause(ctx, what); err != nil {
			return err
		}
	}
}

// rebook makes the claim of a pod that has none: the daemon that made the pod died before it
// could make the claim. The scheduler ignores a pod whose claim does not exist.
func (cl *claims) rebook(ctx context.Context, what string, pod *corev1.Pod) error {
	bytes, err := strconv.ParseInt(pod.Annotations[manifest.BytesKey], 10, 64)
	if err != nil {
		return nil // it has no GPUs, or belongs to a Job
	}
	err = cl.c.claims(cl.c.resource.Get(), manifest.HomeOf(pod)).Do(ctx).Error()
	if !apierrors.IsNotFound(err) {
		return fail(ctx, what, err)
	}
	spec := containers.Spec{Name: pod.Name, GPUMemory: bytes}
	for _, e := range pod.Spec.Containers[0].Env {
		if e.Name == manifest.VisibleGPUs {
			spec.GPUs = strings.Split(e.Value, ",")
		}
	}
	at, err := cl.view.find(ctx, spec.GPUs)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return cl.book(ctx, what, manifest.NewClaim(spec, at, pod), nil, func() {})
}

// unbook deletes a claim. The claim exists until the cluster has released its devices.
func (cl *claims) unbook(ctx context.Context, what string, at types.NamespacedName) error {
	err := cl.c.claims(cl.c.resource.Delete(), at).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fail(ctx, what, err)
}

// unbookOf deletes the claim of a Job's pod. It keeps the claim of the next pod, which has the
// same name.
func (cl *claims) unbookOf(ctx context.Context, what string, pod *corev1.Pod) error {
	at := types.NamespacedName{Namespace: pod.Namespace, Name: manifest.ClaimOf(pod)}
	var claim resourcev1.ResourceClaim
	err := cl.c.claims(cl.c.resource.Get(), at).Do(ctx).Into(&claim)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fail(ctx, what, err)
	}
	if !slices.ContainsFunc(claim.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == pod.UID }) {
		return nil
	}
	err = cl.c.claims(cl.c.resource.Delete(), at).Body(&metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &claim.UID}}).Do(ctx).Error()
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fail(ctx, what, err)
}

// pause waits a moment for a change in the cluster that no watch reports.
func pause(ctx context.Context, what string) error {
	select {
	case <-ctx.Done():
		return fail(ctx, what, ctx.Err())
	case <-time.After(100 * time.Millisecond):
		return nil
	}
}
