package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"carma/containers"
	"carma/containers/kubernetes/manifest"
)

// Wait blocks until the pod's program has ended. It continues from the last state that Start,
// or a Wait that timed out, has read.
func (d *Driver) Wait(ctx context.Context, id string) (exit containers.Exit, err error) {
	what := "wait for pod " + d.c.ns.Short(id)
	l := d.watch.handover.take(id)
	if l != nil && l.pod.DeletionTimestamp != nil { // a deadline may have passed since then
		l.end()
		l = nil
	}
	if l == nil {
		if l, err = d.watch.lookout(id, func() (*corev1.Pod, error) { return d.c.pod(ctx, what, id) }); err != nil {
			return exit, err
		}
	}
	err = d.watch.lookOn(ctx, what, id, l, maxQuiet, func(pod *corev1.Pod) (over bool, err error) {
		exit, over = manifest.ExitOf(pod)
		switch {
		case over && pod.Annotations[manifest.StopKey] == manifest.Removed:
			return true, fmt.Errorf("%s: %w: it is being removed", what, containers.ErrNotFound)
		case over && manifest.DeletedByOthers(pod):
			return true, fmt.Errorf("%s: %w: somebody deleted it", what, containers.ErrNotFound)
		}
		return over, nil
	})
	if err != nil && ctx.Err() != nil {
		d.watch.handover.keep(id, l, leftFor)
	} else {
		l.end()
		d.watch.handover.drop(id)
	}
	return exit, err
}

// Signal deletes the pod, because a cluster sends a stop signal only with a deletion. The pod
// object exists until Remove. The kubelet kills the program when the pod's grace period is
// over.
func (d *Driver) Signal(ctx context.Context, id string) error {
	return d.stop(ctx, "stop pod "+d.c.ns.Short(id), id, nil, manifest.Stopped)
}

// Kill deletes the pod with the shortest grace period. The kubelet extends it to two seconds.
// After [Driver.Signal] Kill has no effect, because a kubelet that waits for the end of a grace
// period ignores a shorter one.
func (d *Driver) Kill(ctx context.Context, id string) error {
	return d.stop(ctx, "kill pod "+d.c.ns.Short(id), id, &shortest, manifest.Stopped)
}

// Abort ends a pod that has not started to run. It implements [containers.Aborter].
func (d *Driver) Abort(ctx context.Context, id string) error {
	what := "end the start of pod " + d.c.ns.Short(id)
	pod, err := d.c.pod(ctx, what, id)
	if isGone(err) || err == nil && manifest.Running(pod) {
		return nil
	}
	if err != nil {
		return err
	}
	return d.stop(ctx, what, id, &shortest, manifest.Stopped)
}

// shortest is the shortest grace period in seconds with which a kubelet still reports a pod's
// end.
var shortest = int64(1)

func (d *Driver) stop(ctx context.Context, what, id string, grace *int64, how string) error {
	d.fresh.Delete(id)
	d.watch.handover.drop(id)
	pod, err := d.c.pod(ctx, what, id)
	if isGone(err) || err == nil && (manifest.Ended(pod) || manifest.Gated(pod)) {
		return nil
	}
	if err != nil {
		return err
	}
	if was := pod.Annotations[manifest.StopKey]; was == "" || how == manifest.Removed && was != manifest.Removed {
		if _, err := d.c.patchPod(ctx, pod, manifest.AnnotationPatch(manifest.StopKey, how)); err != nil && !apierrors.IsNotFound(err) {
			return fail(ctx, what, err)
		}
	}
	return d.end(ctx, what, pod, grace)
}

// end deletes a pod with a grace period in seconds, or the pod's own if grace is nil. The
// finalizer keeps the pod readable.
func (d *Driver) end(ctx context.Context, what string, pod *corev1.Pod, grace *int64) error {
	if pod.DeletionTimestamp != nil {
		return nil
	}
	err := d.c.pods(d.c.core.Delete(), manifest.HomeOf(pod)).Body(&metav1.DeleteOptions{
		GracePeriodSeconds: grace, Preconditions: &metav1.Preconditions{UID: &pod.UID},
	}).Do(ctx).Error()
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fail(ctx, what, err)
}

// Remove ends the pod, and deletes it and then its claim. It returns when the pod is gone and
// the cluster has accepted the claim's deletion. The cluster may release the GPUs a moment
// later.
//
// The claim is deleted last. The cluster's controller processes a claim when the claim or its
// pod changes. If the controller does not know the pod yet, for example after an outage of the
// apiserver, it keeps the claim as long as the pod exists. It gets no event about a pod that it
// never knew, so the claim would keep its memory forever. If the daemon dies between the two
// deletions, the garbage collector deletes the claim, because the pod owns it.
func (d *Driver) Remove(ctx context.Context, id string) error {
	what := "remove pod " + d.c.ns.Short(id)
	if err := d.stop(ctx, what, id, &shortest, manifest.Removed); err != nil {
		return err
	}
	var claim *types.NamespacedName
	err := d.watch.follow(ctx, what, id, func(pod *corev1.Pod) (bool, error) {
		if !manifest.Ended(pod) && !manifest.Gated(pod) {
			return false, nil
		}
		if manifest.MadeByJob(pod) {
			return true, d.jobs.letGo(ctx, what, pod)
		}
		if len(pod.Spec.ResourceClaims) > 0 {
			claim = new(manifest.HomeOf(pod))
		}
		return false, d.release(ctx, what, pod)
	})
	switch {
	case !isGone(err):
		return err
	case claim == nil:
		return nil
	}
	return d.claims.unbook(ctx, what, *claim)
}

// release deletes an ended pod and removes carma's finalizer, so that the cluster removes the
// pod.
func (d *Driver) release(ctx context.Context, what string, pod *corev1.Pod) error {
	if pod.DeletionTimestamp == nil {
		if err := d.end(ctx, what, pod, new(int64)); err != nil {
			return err
		}
	}
	if slices.Contains(pod.Finalizers, manifest.Finalizer) {
		others := slices.DeleteFunc(slices.Clone(pod.Finalizers), func(f string) bool { return f == manifest.Finalizer })
		patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": others, "uid": pod.UID}})
		if _, err := d.c.patchPod(ctx, pod, string(patch)); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fail(ctx, what, err)
		}
	}
	return nil
}

// List returns the pods that carry all the labels, newest first.
func (d *Driver) List(ctx context.Context, labels map[string]string) ([]containers.Container, error) {
	selector := metav1.LabelSelector{MatchLabels: map[string]string{manifest.ManagedBy: manifest.Owner}}
	for k, v := range labels {
		if manifest.Selectable(k, v) {
			selector.MatchLabels[k] = v
		}
	}
	options := &metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(&selector)}
	var all []corev1.Pod
	for _, namespace := range d.c.ns.Scope() {
		var list corev1.PodList
		if err := d.c.pods(d.c.core.Get(), types.NamespacedName{Namespace: namespace}).VersionedParams(options, parameters).Do(ctx).Into(&list); err != nil {
			return nil, fail(ctx, "list pods", err)
		}
		all = append(all, list.Items...)
	}
	slices.SortFunc(all, func(a, b corev1.Pod) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	out := []containers.Container{}
	for i := range all {
		pod := &all[i]
		if has := manifest.LabelsOf(pod); d.c.ns.Made(pod.Namespace, pod.Labels) && hasAll(has, labels) {
			out = append(out, containers.Container{ID: manifest.IDOf(pod), Name: pod.Name, State: manifest.StateOf(pod), Labels: has})
		}
	}
	return out, nil
}

func hasAll(have, want map[string]string) bool {
	for k, v := range want {
		if got, ok := have[k]; !ok || got != v {
			return false
		}
	}
	return true
}
