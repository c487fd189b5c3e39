package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"carma/containers"
	"carma/containers/kubernetes/manifest"
)

// Create makes the pod, with the scheduling gate, and the claim. If a pod with the spec's name
// and identity exists, Create returns the id of that pod.
func (d *Driver) Create(ctx context.Context, spec containers.Spec) (string, error) {
	what := fmt.Sprintf("create pod %q", spec.Name)
	if spec.Namespace != "" && !d.Serves(spec.Namespace) {
		return "", fmt.Errorf("%s: %w: namespace %s is not one of those that this daemon serves (kubernetes-namespaces)", what, containers.ErrInvalid, spec.Namespace)
	}
	if err := spec.Check(d); err != nil {
		return "", fmt.Errorf("%s: %w", what, err)
	}
	if spec.Job != nil {
		return d.jobs.take(ctx, what, spec)
	}
	at, err := d.view.find(ctx, spec.GPUs)
	if err != nil { // the pod may exist, and not need a GPU any more
		switch pod, unknown := d.existing(ctx, what, spec); {
		case unknown != nil:
			return "", unknown
		case needless(pod):
			return manifest.IDOf(pod), nil
		}
		return "", fmt.Errorf("%s: %w", what, err)
	}
	leave, err := d.turn(ctx, what)
	if err != nil {
		return "", err
	}
	defer leave()
	pod, made, err := d.post(ctx, what, spec, at)
	switch {
	case err != nil:
		return "", err
	case !made && needless(pod):
		return manifest.IDOf(pod), nil
	}
	if len(pod.Spec.ResourceClaims) > 0 {
		if err := d.claims.book(ctx, what, manifest.NewClaim(spec, at, pod), nil, leave); err != nil {
			if fault, ok := errors.AsType[*containers.StartFault](err); ok && (fault.Scope == containers.ScopeTask || fault.Scope == containers.ScopeNamespace) {
				err = errors.Join(err, d.release(ctx, what, pod)) // the pod has no claim and will not get one
			}
			return "", err
		}
	}
	if made {
		d.fresh.Store(manifest.IDOf(pod), pod)
	}
	return manifest.IDOf(pod), nil
}

// needless reports whether the pod exists and needs no claim: it has ended or has no GPUs.
func needless(pod *corev1.Pod) bool {
	return pod != nil && (manifest.Ended(pod) || len(pod.Spec.ResourceClaims) == 0)
}

// turn waits until few other pods are being made, so that the pods of a burst are started in
// order before more pods are made. A caller must call leave before it waits for anything else.
func (d *Driver) turn(ctx context.Context, what string) (leave func(), err error) {
	select {
	case d.making <- struct{}{}:
		return sync.OnceFunc(func() { <-d.making }), nil
	case <-ctx.Done():
		return nil, fail(ctx, what, ctx.Err())
	}
}

// post makes the pod. If an earlier or concurrent call of Create has made the spec's pod, post
// returns that pod. The cluster checks other conditions before the name: if a quota is full,
// for example, it does not report that the name exists.
func (d *Driver) post(ctx context.Context, what string, spec containers.Spec, at []manifest.Place) (pod *corev1.Pod, made bool, err error) {
	node := ""
	if len(at) > 0 {
		node = at[0].Node
	}
	pod, refused := d.manifests.Pod(spec, node)
	if refused != nil {
		refused = fmt.Errorf("%s: %w", what, refused)
	} else {
		made := &corev1.Pod{}
		err := d.c.pods(d.c.core.Post(), types.NamespacedName{Namespace: pod.Namespace}).Body(pod).Do(ctx).Into(made)
		if err == nil {
			return made, true, nil
		}
		refused = d.c.failIn(ctx, what, pod.Namespace, err)
		if apierrors.IsAlreadyExists(err) {
			refused = fmt.Errorf("%s: %w: a pod of this name is being removed", what, containers.ErrUnavailable)
		}
	}
	if pod, err = d.existing(ctx, what, spec); err != nil || pod != nil {
		return pod, false, err
	}
	return nil, false, refused
}

// existing returns the pod of the spec's name if it is the spec's own, or nil if there is
// none.
func (d *Driver) existing(ctx context.Context, what string, spec containers.Spec) (*corev1.Pod, error) {
	pod, err := d.c.podNamed(ctx, d.c.ns.Home(spec.Namespace, spec.Name))
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err): // the name is not valid for a pod, and making the pod fails with that error
		return nil, nil
	case err != nil:
		return nil, fail(ctx, what, err)
	}
	if err := spec.Recognize(pod.Name, manifest.LabelsOf(pod)); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return pod, nil
}

// Start removes the scheduling gate and returns when the program runs or has ended. If the
// program cannot run, Start ends the pod, so that it does not run later. The next Wait
// continues from the last state that Start has read.
func (d *Driver) Start(ctx context.Context, id string) error {
	what := "start pod " + d.c.ns.Short(id)
	l, err := d.watch.lookout(id, func() (*corev1.Pod, error) { return d.lift(ctx, what, id) })
	if err != nil {
		return err
	}
	s := start{c: d.c, view: d.view, claimPatience: d.opts.ClaimPatience, nodePatience: d.opts.NodePatience}
	l.due = func(pod *corev1.Pod) bool { return s.stuck(ctx, pod) != "" }
	err = d.watch.lookOn(ctx, what, id, l, s.lookEvery(), func(pod *corev1.Pod) (bool, error) {
		if pod.Spec.NodeName != "" || turnedDown(pod) != nil {
			containers.Placed(ctx)
		}
		if exit, over := manifest.ExitOf(pod); over && exit.Error != "" {
			return true, startError(what, exit.Error)
		} else if over || manifest.Running(pod) {
			return true, nil
		}
		fault := s.stuck(ctx, pod)
		if fault == "" {
			return false, nil
		}
		if err := d.give(ctx, what, pod, fault); err != nil {
			return true, err
		}
		return true, startError(what, fault)
	})
	if err != nil {
		l.end()
		return err
	}
	l.due = nil
	d.watch.handover.keep(id, l, leftFor)
	return nil
}

// lift removes a pod's scheduling gate, and returns the pod. It does not read a pod that nobody
// has changed since this driver made it.
func (d *Driver) lift(ctx context.Context, what, id string) (*corev1.Pod, error) {
	if made, ok := d.fresh.LoadAndDelete(id); ok && made.(*corev1.Pod).Annotations[manifest.FaultKey] == "" {
		pod := made.(*corev1.Pod)
		lifted, err := d.c.patchPod(ctx, pod, manifest.UngatePatch(pod, pod.ResourceVersion))
		if err == nil || !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			return lifted, fail(ctx, what, err)
		}
	}
	pod, err := d.c.pod(ctx, what, id)
	if err != nil {
		return nil, err
	}
	switch {
	case pod.Annotations[manifest.FaultKey] != "":
		return nil, startError(what, pod.Annotations[manifest.FaultKey])
	case !manifest.Gated(pod):
		return pod, nil
	case pod.DeletionTimestamp != nil:
		return nil, fmt.Errorf("%s: %w: it is being removed", what, containers.ErrNotFound)
	}
	if err := d.claims.rebook(ctx, what, pod); err != nil {
		return nil, err
	}
	pod, err = d.c.patchPod(ctx, pod, manifest.UngatePatch(pod, ""))
	return pod, fail(ctx, what, err)
}

// give ends a pod that cannot start, and writes the reason into an annotation of the pod.
func (d *Driver) give(ctx context.Context, what string, pod *corev1.Pod, fault string) error {
	if _, err := d.c.patchPod(ctx, pod, manifest.AnnotationPatch(manifest.FaultKey, fault)); err != nil {
		return fail(ctx, what, err)
	}
	return d.end(ctx, what, pod, &shortest)
}

// startError returns the error of a start for which the cluster reports msg.
func startError(what, msg string) error {
	switch {
	case containers.MachineFault(msg):
		return fmt.Errorf("%s: %w", what, containers.ReadStartFault(msg))
	case containers.SubmitterFault(msg):
		return fmt.Errorf("%s: %w: %s", what, containers.ErrInvalid, msg)
	}
	return fmt.Errorf("%s: %s", what, msg)
}
