package manifest

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// UngatePatch returns the patch that removes carma's gate from a pod and keeps other gates. It
// also pins a Job's pod to the node of its GPUs, which is impossible once the gate is gone. If
// version is not empty, the patch applies only to that resourceVersion of the pod.
//
// The patch also drops the managedFields of carma's own pods. They are half of the pod's size,
// and the cluster would otherwise write them at each change and send them to all watchers.
func UngatePatch(pod *corev1.Pod, version string) string {
	others := slices.DeleteFunc(slices.Clone(pod.Spec.SchedulingGates), func(g corev1.PodSchedulingGate) bool { return g.Name == Gate })
	spec := map[string]any{"schedulingGates": others}
	metadata := map[string]any{}
	if node := pod.Annotations[NodeKey]; node != "" {
		spec["affinity"] = Pinned(pod.Spec.Affinity, node)
	} else {
		metadata["managedFields"] = []metav1.ManagedFieldsEntry{{}}
	}
	if version != "" {
		metadata["resourceVersion"] = version
	}
	change := map[string]any{"spec": spec, "metadata": metadata}
	patch, _ := json.Marshal(change)
	return string(patch)
}

// Pinned returns a copy of an affinity that additionally allows only one node.
func Pinned(was *corev1.Affinity, node string) *corev1.Affinity {
	only := onNode(node)
	if was == nil {
		return only
	}
	out := was.DeepCopy()
	if out.NodeAffinity == nil || out.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		preferred := out.NodeAffinity
		if out.NodeAffinity = only.NodeAffinity; preferred != nil {
			out.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = preferred.PreferredDuringSchedulingIgnoredDuringExecution
		}
		return out
	}
	terms := out.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms { // a node must satisfy one of the terms
		terms[i].MatchFields = append(terms[i].MatchFields, only.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields...)
	}
	return out
}

// Values of [StopKey]. carma stopped the pod, or removed it while it ran.
const (
	Stopped = "stopped"
	Removed = "removed"
)

// AnnotationPatch returns the patch that sets an annotation.
func AnnotationPatch(key, value string) string {
	b, _ := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}})
	return string(b)
}
