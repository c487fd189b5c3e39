package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"carma/containers"
)

// Create makes the pod, kept by its gate, and the claim. If a pod with the spec's
// name and identity exists, Create returns that one's id.
func (d *Driver) Create(ctx context.Context, spec containers.Spec) (string, error) {
	what := fmt.Sprintf("create pod %q", spec.Name)
	if spec.Namespace != "" && !d.Serves(spec.Namespace) {
		return "", fmt.Errorf("%s: %w: namespace %s is not one of those that this daemon serves (kubernetes-namespaces)", what, containers.ErrInvalid, spec.Namespace)
	}
	if err := spec.Check(); err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	if spec.Job != nil {
		return d.take(ctx, what, spec)
	}
	pod, err := d.existing(ctx, what, spec)
	if err != nil {
		return "", err
	}
	if pod != nil && (ended(pod) || len(pod.Spec.ResourceClaims) == 0) {
		return idOf(pod), nil
	}
	at, err := d.find(ctx, spec.GPUs)
	if err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	if pod == nil {
		if pod, err = d.post(ctx, what, spec, at); err != nil {
			return "", err
		}
	}
	if len(spec.GPUs) > 0 && len(pod.Spec.ResourceClaims) > 0 {
		if err := d.book(ctx, what, makeClaim(spec, at, pod), nil); err != nil {
			if fault, ok := errors.AsType[*containers.StartFault](err); ok && fault.Scope == containers.ScopeTask {
				err = errors.Join(err, d.release(ctx, what, pod)) // it will never have a claim
			}
			return "", err
		}
	}
	return idOf(pod), nil
}

// post makes the pod. If another call of Create was quicker, its pod is taken.
func (d *Driver) post(ctx context.Context, what string, spec containers.Spec, at []place) (*corev1.Pod, error) {
	node := ""
	if len(at) > 0 {
		node = at[0].node
	}
	pod, err := d.makePod(spec, node)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	made := &corev1.Pod{}
	err = d.pods(d.core.Post(), types.NamespacedName{Namespace: pod.Namespace}).Body(pod).Do(ctx).Into(made)
	if !apierrors.IsAlreadyExists(err) {
		return made, d.failIn(ctx, what, pod.Namespace, err)
	}
	if made, err = d.existing(ctx, what, spec); err == nil && made == nil {
		err = fmt.Errorf("%s: %w: a pod of this name is being removed", what, containers.ErrUnavailable)
	}
	return made, err
}

// existing returns the pod of the spec's name if it is the spec's own; nil: there
// is none.
func (d *Driver) existing(ctx context.Context, what string, spec containers.Spec) (*corev1.Pod, error) {
	pod, err := d.podNamed(ctx, d.home(spec.Namespace, spec.Name))
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err): // no name of a pod; making it tells so
		return nil, nil
	case err != nil:
		return nil, fail(ctx, what, err)
	}
	if err := spec.Recognize(pod.Name, labelsOf(pod)); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return pod, nil
}

// Start lifts the gate and returns when the program runs, or has run. If it
// cannot, the pod is ended, so that it will not run later.
func (d *Driver) Start(ctx context.Context, id string) error {
	what := "start pod " + d.short(id)
	pod, err := d.pod(ctx, what, id)
	if err != nil {
		return err
	}
	switch {
	case pod.Annotations[faultKey] != "":
		return startError(what, pod.Annotations[faultKey])
	case pod.DeletionTimestamp != nil && gated(pod):
		return fmt.Errorf("%s: %w: it is being removed", what, containers.ErrNotFound)
	case gated(pod):
		if err := d.rebook(ctx, what, pod); err != nil {
			return err
		}
		if _, err := d.patchPod(ctx, pod, lifting(pod)); err != nil {
			return fail(ctx, what, err)
		}
	}
	var w waits
	return d.followEach(ctx, what, id, d.lookEvery(), func(pod *corev1.Pod) (bool, error) {
		if exit, over := exitOf(pod); over && exit.Error != "" {
			return true, startError(what, exit.Error)
		} else if over || running(pod) {
			return true, nil
		}
		fault := d.stuck(ctx, pod, &w)
		if fault == "" {
			return false, nil
		}
		if err := d.give(ctx, what, pod, fault); err != nil {
			return true, err
		}
		return true, startError(what, fault)
	})
}

// lifting is the change that lifts a pod's gate; those of others stay. A pod that is a
// Job's is pinned to the node of its GPUs by it: its gate gone, that cannot be changed.
func lifting(pod *corev1.Pod) string {
	others := slices.DeleteFunc(slices.Clone(pod.Spec.SchedulingGates), func(g corev1.PodSchedulingGate) bool { return g.Name == gate })
	spec := map[string]any{"schedulingGates": others}
	if node := pod.Annotations[nodeKey]; node != "" {
		spec["affinity"] = pinned(pod.Spec.Affinity, node)
	}
	patch, _ := json.Marshal(map[string]any{"spec": spec})
	return string(patch)
}

// give ends a pod that cannot start, and writes the reason to it.
func (d *Driver) give(ctx context.Context, what string, pod *corev1.Pod, fault string) error {
	if _, err := d.patchPod(ctx, pod, mergeAnnotation(faultKey, fault)); err != nil {
		return fail(ctx, what, err)
	}
	return d.end(ctx, what, pod, &shortest)
}

// startError is the error of a start that the cluster refused with msg.
func startError(what, msg string) error {
	switch {
	case containers.MachineFault(msg):
		return fmt.Errorf("%s: %w", what, containers.ReadStartFault(msg))
	case containers.SubmitterFault(msg):
		return fmt.Errorf("%s: %w: %s", what, containers.ErrInvalid, msg)
	}
	return fmt.Errorf("%s: %s", what, msg)
}
