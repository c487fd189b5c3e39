package kubernetes

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carma/containers"
	"carma/internal/lazyregexp"
)

// Limits of a start.
const (
	// settling is how long an error of the kubelet may last that it tries to
	// overcome.
	settling = 10 * time.Second
	// pulling is how long a registry may not answer.
	pulling = 2 * time.Minute
	// fetching is how long a node may fetch an image. The runtime gives up itself
	// when nothing comes.
	fetching = time.Hour
)

// The beginnings of messages that are the driver's own. The table of failed starts
// knows them.
const (
	unschedulable = "no node takes the pod: "
	pullFailed    = "the node cannot pull the image: "
	nodeRefused   = "the node refused the pod: "
	nodeStuck     = "the node does not start the pod: "
)

// noSuchImage matches what a registry says that will not change by itself.
var noSuchImage = lazyregexp.New(`(?i)not found|no such image|denied|unauthorized|authorization failed|invalid reference|manifest unknown`)

// waits are since when a pod that starts is as it is, by what it waits for.
type waits struct{ claim, kubelet, registry, node time.Time }

// lasts reports whether something has been so for a time, and notes when it began.
func lasts(since *time.Time, limit time.Duration) bool {
	if since.IsZero() {
		*since = time.Now()
	}
	return time.Since(*since) >= limit
}

// lookEvery is how often a pod that starts is looked at without a hint.
func (d *Driver) lookEvery() time.Duration {
	return max(10*time.Millisecond, min(maxQuiet, d.opts.ClaimPatience/4, d.opts.NodePatience/4))
}

// turnedDown is what the scheduler says of a pod that it finds no place for; nil: nothing.
func turnedDown(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
			return c
		}
	}
	return nil
}

// stuck says why a pod will not start by itself; empty: it may.
func (d *Driver) stuck(ctx context.Context, pod *corev1.Pod, w *waits) string {
	if c := turnedDown(pod); c != nil {
		if !lasts(&w.claim, d.opts.ClaimPatience) {
			return ""
		}
		text := unschedulable + containers.CleanMessage(c.Message)
		if f := containers.ReadStartFault(text); f != nil && f.Code == "gpu-taken" {
			text += d.holders(ctx, pod)
		}
		return text
	}
	state := waiting(pod)
	if pod.Spec.NodeName == "" && state == nil {
		if lasts(&w.claim, max(d.opts.ClaimPatience, d.opts.NodePatience)) {
			return unschedulable + "the cluster's scheduler does not look at it"
		}
		return ""
	}
	if state == nil || state.Reason == "ContainerCreating" || state.Reason == "PodInitializing" {
		return d.idle(ctx, pod, w)
	}
	text := containers.CleanMessage(state.Message)
	switch state.Reason {
	case "InvalidImageName":
		return pullFailed + text
	case "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "RegistryUnavailable":
		if state.Reason == "ErrImagePull" && noSuchImage().MatchString(text) || lasts(&w.registry, pulling) {
			return pullFailed + text
		}
	case "CreateContainerError", "CreateContainerConfigError", "RunContainerError":
		if containers.SubmitterFault(text) || lasts(&w.kubelet, settling) {
			return text
		}
	}
	return ""
}

// idle says why a node does nothing for a pod that was given to it; empty: it may
// yet.
func (d *Driver) idle(ctx context.Context, pod *corev1.Pod, w *waits) string {
	if why := d.nodeAway(ctx, pod.Spec.NodeName); why == "" {
		w.node = time.Time{}
	} else if lasts(&w.node, d.opts.ClaimPatience) {
		return nodeStuck + why
	}
	if !lasts(&w.kubelet, d.opts.NodePatience) {
		return ""
	}
	reason, text := d.lastEvent(ctx, pod)
	if reason == "Pulling" && (pod.Status.StartTime == nil || time.Since(pod.Status.StartTime.Time) < fetching) {
		return ""
	}
	return nodeStuck + cmp.Or(text, fmt.Sprintf("node %s has said nothing of it for %s", pod.Spec.NodeName, d.opts.NodePatience))
}

// nodeAway says why a node cannot start pods; empty: it can, or that is not known.
func (d *Driver) nodeAway(ctx context.Context, name string) string {
	if name == "" {
		return ""
	}
	if seen, ok := d.open().nodes.one(name); ok {
		return seen.away
	}
	var node corev1.Node
	err := d.core.Get().Resource("nodes").Name(name).Do(ctx).Into(&node)
	switch {
	case apierrors.IsNotFound(err):
		return "node " + name + " is gone"
	case err != nil:
		return ""
	}
	return notReady(&node)
}

// notReady says why a node does not work; empty: it does.
func notReady(node *corev1.Node) string {
	i := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	if i < 0 || node.Status.Conditions[i].Status == corev1.ConditionTrue {
		return ""
	}
	return strings.TrimSuffix("node "+node.Name+" is not ready: "+containers.CleanMessage(node.Status.Conditions[i].Message), ": ")
}

// lastEvent is the latest of the cluster's events about a pod: its reason, and for
// people what it says if it is a warning.
func (d *Driver) lastEvent(ctx context.Context, pod *corev1.Pod) (reason, text string) {
	var list corev1.EventList
	options := &metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(pod.UID)}
	if err := d.core.Get().Namespace(pod.Namespace).Resource("events").VersionedParams(options, parameters).Do(ctx).Into(&list); err != nil {
		return "", ""
	}
	var at, warned time.Time
	for _, e := range list.Items {
		when := e.LastTimestamp.Time
		if e.EventTime.After(when) {
			when = e.EventTime.Time
		}
		if !when.Before(at) {
			at, reason = when, e.Reason
		}
		if e.Type == corev1.EventTypeWarning && !when.Before(warned) {
			warned, text = when, e.Reason+": "+containers.CleanMessage(e.Message)
		}
	}
	return reason, text
}
