package kubernetes

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels of a container that is a task's, as package runner writes them.
const (
	taskLabel    = "carma.task"
	attemptLabel = "carma.attempt"
)

// NodePod is a pod on a node, and the task's attempt that it is.
type NodePod struct {
	UID           string
	Task, Attempt int64
}

// PodsOn are the pods on a node that are tasks of this namespace's daemon, in any
// namespace. The apiserver answers from its memory.
func (a *agents) PodsOn(ctx context.Context, node string) ([]NodePod, error) {
	var list corev1.PodList
	options := &metav1.ListOptions{ResourceVersion: "0", LabelSelector: managedBy + "=" + ours, FieldSelector: "spec.nodeName=" + node}
	if err := a.c.core.Get().Resource("pods").VersionedParams(options, parameters).Do(ctx).Into(&list); err != nil {
		return nil, fail(ctx, "read which pods are on node "+node, err)
	}
	var out []NodePod
	for i := range list.Items {
		pod := &list.Items[i]
		if !a.c.ns.made(pod.Namespace, pod.Labels) {
			continue
		}
		labels := labelsOf(pod)
		if labels == nil {
			labels = pod.Labels
		}
		task, wrong := strconv.ParseInt(labels[taskLabel], 10, 64)
		if wrong != nil || task <= 0 {
			continue // a helper of carma's: it is no task
		}
		attempt, _ := strconv.ParseInt(labels[attemptLabel], 10, 64)
		out = append(out, NodePod{UID: string(pod.UID), Task: task, Attempt: attempt})
	}
	return out, nil
}
