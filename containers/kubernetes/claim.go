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

// find returns the places of GPUs, which must be on one node. A GPU that the stream of
// changes has not shown yet is read from the cluster.
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

// book makes the claim. An existing claim with the pod's uid is the pod's own; any other
// is left over from a pod of the same name and is deleted first. same says whether the
// pod's own claim has the wanted content; a nil same accepts it. book calls waits before
// it waits for a deletion.
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

// rebook makes the claim of a pod that has none: the daemon that made the pod died before
// it could make the claim. Without a claim the scheduler would not look at the pod.
func (cl *claims) rebook(ctx context.Context, what string, pod *corev1.Pod) error {
	bytes, err := strconv.ParseInt(pod.Annotations[manifest.BytesKey], 10, 64)
	if err != nil {
		return nil // it has no GPUs, or is a Job's
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

// unbook deletes a claim. It goes when the cluster has taken its devices back.
func (cl *claims) unbook(ctx context.Context, what string, at types.NamespacedName) error {
	err := cl.c.claims(cl.c.resource.Delete(), at).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return nil
	}
	return fail(ctx, what, err)
}

// unbookOf deletes the claim of a Job's pod. The next pod's claim has the same name, and
// stays.
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

// pause waits a moment for something that the cluster does in its own time and
// that has no hint.
func pause(ctx context.Context, what string) error {
	select {
	case <-ctx.Done():
		return fail(ctx, what, ctx.Err())
	case <-time.After(100 * time.Millisecond):
		return nil
	}
}
