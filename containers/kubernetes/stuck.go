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
	"carma/containers/kubernetes/manifest"
	"carma/internal/lazyregexp"
)

// Time limits of a start.
const (
	// settling is the longest duration of an error after which the kubelet retries.
	settling = 10 * time.Second
	// pulling is the longest time for which a registry may not answer.
	pulling = 2 * time.Minute
	// fetching is the time limit of a node that fetches an image. The runtime itself
	// gives up when nothing arrives.
	fetching = time.Hour
)

// Prefixes of the driver's own messages. The table of start failures contains them.
const (
	unschedulable = "no node takes the pod: "
	pullFailed    = "the node cannot pull the image: "
	nodeStuck     = "the node does not start the pod: "
)

// noSuchImage matches a registry's errors that are permanent.
var noSuchImage = lazyregexp.New(`(?i)not found|no such image|denied|unauthorized|authorization failed|invalid reference|manifest unknown`)

// start checks whether a starting pod makes progress.
type start struct {
	c    *client
	view *view
	// The limits of [Options].
	claimPatience, nodePatience time.Duration
	// claim, kubelet, registry and node are the times since when the pod has waited for that part
	// without a change.
	claim, kubelet, registry, node time.Time
}

// lasts reports whether a condition has held for limit. At the first call it sets since to the
// present time.
func lasts(since *time.Time, limit time.Duration) bool {
	if since.IsZero() {
		*since = time.Now()
	}
	return time.Since(*since) >= limit
}

// lookEvery returns the time after which a starting pod without events is read again.
func (s *start) lookEvery() time.Duration {
	return max(10*time.Millisecond, min(maxQuiet, s.claimPatience/4, s.nodePatience/4))
}

// turnedDown returns the scheduler's condition of a pod that it cannot place, or nil.
func turnedDown(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable {
			return c
		}
	}
	return nil
}

// stuck returns the reason why a pod cannot start without help, or empty if it may still start.
func (s *start) stuck(ctx context.Context, pod *corev1.Pod) string {
	if c := turnedDown(pod); c != nil {
		if !lasts(&s.claim, s.claimPatience) {
			return ""
		}
		text := unschedulable + containers.CleanMessage(c.Message)
		if f := containers.ReadStartFault(text); f != nil && f.Code == "gpu-taken" {
			text += s.view.holders(ctx, pod)
		}
		return text
	}
	state := manifest.Waiting(pod)
	if pod.Spec.NodeName == "" && state == nil {
		if lasts(&s.claim, max(s.claimPatience, s.nodePatience)) {
			return unschedulable + "the cluster's scheduler does not look at it"
		}
		return ""
	}
	if state == nil || state.Reason == "ContainerCreating" || state.Reason == "PodInitializing" {
		return s.idle(ctx, pod)
	}
	text := containers.CleanMessage(state.Message)
	switch state.Reason {
	case "InvalidImageName":
		return pullFailed + text
	case "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "RegistryUnavailable":
		if state.Reason == "ErrImagePull" && noSuchImage().MatchString(text) || lasts(&s.registry, pulling) {
			return pullFailed + text
		}
	case "CreateContainerError", "CreateContainerConfigError", "RunContainerError":
		if containers.SubmitterFault(text) || lasts(&s.kubelet, settling) {
			return text
		}
	}
	return ""
}

// idle returns the reason why a node does nothing for a pod that is assigned to it, or empty
// while it may still start the pod.
func (s *start) idle(ctx context.Context, pod *corev1.Pod) string {
	if why := s.nodeAway(ctx, pod.Spec.NodeName); why == "" {
		s.node = time.Time{}
	} else if lasts(&s.node, s.claimPatience) {
		return nodeStuck + why
	}
	if !lasts(&s.kubelet, s.nodePatience) {
		return ""
	}
	reason, text := s.lastEvent(ctx, pod)
	if reason == "Pulling" && (pod.Status.StartTime == nil || time.Since(pod.Status.StartTime.Time) < fetching) {
		return ""
	}
	return nodeStuck + cmp.Or(text, fmt.Sprintf("node %s has said nothing of it for %s", pod.Spec.NodeName, s.nodePatience))
}

// nodeAway returns the reason why a node cannot start pods, or empty if it can or its state is
// unknown.
func (s *start) nodeAway(ctx context.Context, name string) string {
	if name == "" {
		return ""
	}
	s.view.open()
	if seen, ok := s.view.nodes.one(name); ok {
		return seen.away
	}
	var node corev1.Node
	err := s.c.core.Get().Resource("nodes").Name(name).Do(ctx).Into(&node)
	switch {
	case apierrors.IsNotFound(err):
		return "node " + name + " is gone"
	case err != nil:
		return ""
	}
	return notReady(&node)
}

// notReady returns the reason why a node is not ready, or empty if it is.
func notReady(node *corev1.Node) string {
	i := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	if i < 0 || node.Status.Conditions[i].Status == corev1.ConditionTrue {
		return ""
	}
	return strings.TrimSuffix("node "+node.Name+" is not ready: "+containers.CleanMessage(node.Status.Conditions[i].Message), ": ")
}

// lastEvent returns the reason of the latest event about a pod, and the event's message if it
// is a warning.
func (s *start) lastEvent(ctx context.Context, pod *corev1.Pod) (reason, text string) {
	var list corev1.EventList
	options := &metav1.ListOptions{FieldSelector: "involvedObject.uid=" + string(pod.UID)}
	if err := s.c.core.Get().Namespace(pod.Namespace).Resource("events").VersionedParams(options, parameters).Do(ctx).Into(&list); err != nil {
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
