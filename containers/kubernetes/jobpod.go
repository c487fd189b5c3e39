package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"carma/containers"
	"carma/containers/kubernetes/manifest"
)

// podOf returns the pod of a Job's attempt: the pod that the attempt has, or else a pod of the
// Job that waits for a claim.
func (j *jobs) podOf(ctx context.Context, what string, spec containers.Spec) (pod *corev1.Pod, has bool, err error) {
	var list corev1.PodList
	own := &metav1.ListOptions{LabelSelector: batchv1.ControllerUidLabel + "=" + spec.Job.UID}
	if err := j.c.pods(j.c.core.Get(), types.NamespacedName{Namespace: spec.Job.Namespace}).VersionedParams(own, parameters).Do(ctx).Into(&list); err != nil {
		return nil, false, fail(ctx, what, err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	for i := range list.Items {
		if p := &list.Items[i]; string(manifest.JobUID(p)) != spec.Job.UID {
			continue
		} else if spec.Recognize(p.Name, manifest.LabelsOf(p)) == nil {
			return p, true, nil
		} else if manifest.WaitsForClaim(p) && pod == nil {
			pod = p
		}
	}
	if pod == nil {
		err = fmt.Errorf("%s: %w", what, containers.ErrNoPod)
	}
	return pod, false, err
}

// take allocates GPUs for a Job's pod, and assigns the pod to an attempt. The pod keeps its
// scheduling gate. take makes the claim first, so that an attempt's pod has a claim even if the
// daemon dies in between.
func (j *jobs) take(ctx context.Context, what string, spec containers.Spec) (string, error) {
	for {
		pod, has, err := j.podOf(ctx, what, spec)
		if err != nil {
			return "", err
		}
		if has && (manifest.Ended(pod) || !manifest.Gated(pod)) {
			return manifest.IDOf(pod), nil
		}
		at, err := j.claims.view.find(ctx, spec.GPUs)
		if err != nil {
			return "", fmt.Errorf("%s: %w", what, err)
		}
		claim := manifest.NewClaim(spec, at, pod)
		claim.Name, claim.Labels = manifest.ClaimOf(pod), j.c.ns.ClusterLabels(spec.AllLabels())
		err = j.claims.book(ctx, what, claim, func(old *resourcev1.ResourceClaim) bool { return spec.Recognize(old.Name, old.Labels) == nil }, func() {})
		if errors.Is(err, containers.ErrTaken) {
			return "", &containers.StartFault{Scope: containers.ScopeTask, Code: "claim-taken",
				Cause: "another claim has the name that the Job's pod waits for", Remedy: "kubectl delete resourceclaim " + claim.Name, Text: err.Error()}
		}
		if err != nil {
			return "", err
		}
		if has {
			return manifest.IDOf(pod), nil
		}
		patch, err := j.c.ns.BindPatch(spec, pod, at)
		if err != nil {
			return "", fmt.Errorf("%s: %w", what, err)
		}
		made, err := j.c.patchPod(ctx, pod, patch)
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			continue // the pod was changed or deleted
		}
		if err != nil {
			return "", fail(ctx, what, err)
		}
		return manifest.IDOf(made), nil
	}
}

// letGo releases the GPUs of a Job's pod, and returns the pod to its Job.
func (j *jobs) letGo(ctx context.Context, what string, pod *corev1.Pod) error {
	if err := j.claims.unbookOf(ctx, what, pod); err != nil {
		return err
	}
	patch, err := manifest.ReleasePatch(pod)
	if err != nil {
		return err
	}
	if _, err := j.c.patchPod(ctx, pod, patch); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fail(ctx, what, err)
	}
	return nil
}
