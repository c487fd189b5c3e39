package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"carma/containers"
)

// podOf is the pod of a Job's attempt: the one that it has, or one that waits.
func (j *jobs) podOf(ctx context.Context, what string, spec containers.Spec) (pod *corev1.Pod, has bool, err error) {
	var list corev1.PodList
	own := &metav1.ListOptions{LabelSelector: batchv1.ControllerUidLabel + "=" + spec.Job.UID}
	if err := j.c.pods(j.c.core.Get(), types.NamespacedName{Namespace: spec.Job.Namespace}).VersionedParams(own, parameters).Do(ctx).Into(&list); err != nil {
		return nil, false, fail(ctx, what, err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	for i := range list.Items {
		if p := &list.Items[i]; string(jobUID(p)) != spec.Job.UID {
			continue
		} else if spec.Recognize(p.Name, labelsOf(p)) == nil {
			return p, true, nil
		} else if waitsForClaim(p) && pod == nil {
			pod = p
		}
	}
	if pod == nil {
		err = fmt.Errorf("%s: %w", what, containers.ErrNoPod)
	}
	return pod, false, err
}

// take allocates GPUs for a Job's pod, and makes it the pod of an attempt. The pod stays
// gated. The claim comes first, so that an attempt's pod has one even if the daemon dies
// in between.
func (j *jobs) take(ctx context.Context, what string, spec containers.Spec) (string, error) {
	for {
		pod, has, err := j.podOf(ctx, what, spec)
		if err != nil {
			return "", err
		}
		if has && (ended(pod) || !gated(pod)) {
			return idOf(pod), nil
		}
		at, err := j.claims.view.find(ctx, spec.GPUs)
		if err != nil {
			return "", fmt.Errorf("%s: %w", what, err)
		}
		claim := makeClaim(spec, at, pod)
		claim.Name, claim.Labels = claimOf(pod), j.c.ns.clusterLabels(spec.AllLabels())
		err = j.claims.book(ctx, what, claim, func(old *resourcev1.ResourceClaim) bool { return spec.Recognize(old.Name, old.Labels) == nil }, func() {})
		if errors.Is(err, containers.ErrTaken) {
			return "", &containers.StartFault{Scope: containers.ScopeTask, Code: "claim-taken",
				Cause: "another claim has the name that the Job's pod waits for", Remedy: "kubectl delete resourceclaim " + claim.Name, Text: err.Error()}
		}
		if err != nil {
			return "", err
		}
		if has {
			return idOf(pod), nil
		}
		patch, err := j.taking(spec, pod, at)
		if err != nil {
			return "", fmt.Errorf("%s: %w", what, err)
		}
		made, err := j.c.patchPod(ctx, pod, patch)
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			continue // it was changed, or is gone
		}
		if err != nil {
			return "", fail(ctx, what, err)
		}
		return idOf(made), nil
	}
}

// nodeKey is the annotation of a Job's pod with the node of its GPUs.
const nodeKey = "carma.dev/node"

// told are the annotations from which the policy makes the pod's variables.
var told = map[string]string{
	"CARMA_TASK": "carma.dev/task", "CARMA_ATTEMPT": "carma.dev/attempt", "CARMA_GRANT_BYTES": "carma.dev/grant-bytes", visible: "carma.dev/gpus",
}

// taking is the change that makes a pod an attempt's.
func (j *jobs) taking(spec containers.Spec, pod *corev1.Pod, at []place) (string, error) {
	all, err := json.Marshal(spec.AllLabels())
	if err != nil {
		return "", err
	}
	notes := map[string]string{labelsKey: string(all), told[visible]: strings.Join(spec.GPUs, ",")}
	if len(at) > 0 {
		notes[nodeKey] = at[0].node
	}
	for _, kv := range spec.Env {
		if name, value, _ := strings.Cut(kv, "="); told[name] != "" && name != visible {
			notes[told[name]] = value
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "resourceVersion": pod.ResourceVersion, "annotations": notes,
		"labels": j.c.ns.clusterLabels(spec.AllLabels()), "finalizers": append(slices.Clone(pod.Finalizers), holder),
	}})
	return string(patch), err
}

// leaving is the change that lets a Job's pod go: it is no attempt's any more. One that
// has not run may be another's.
func leaving(pod *corev1.Pod) (string, error) {
	notes := map[string]any{}
	if gated(pod) {
		for _, key := range told {
			notes[key] = nil
		}
		notes[labelsKey], notes[nodeKey] = nil, nil
	}
	others := slices.DeleteFunc(slices.Clone(pod.Finalizers), func(f string) bool { return f == holder })
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "finalizers": others, "annotations": notes, "labels": map[string]any{managedBy: nil, daemonKey: nil},
	}})
	return string(patch), err
}

// letGo gives the GPUs of a Job's pod back, and leaves the pod to its Job.
func (j *jobs) letGo(ctx context.Context, what string, pod *corev1.Pod) error {
	if err := j.claims.unbookOf(ctx, what, pod); err != nil {
		return err
	}
	patch, err := leaving(pod)
	if err != nil {
		return err
	}
	if _, err := j.c.patchPod(ctx, pod, patch); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fail(ctx, what, err)
	}
	return nil
}
