package manifest

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestPinned checks that the patch only narrows an existing affinity, because a cluster accepts
// no other change of a gated pod.
func TestPinned(t *testing.T) {
	term := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpExists}}}
	was := &corev1.Affinity{
		PodAffinity:  &corev1.PodAffinity{},
		NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{term, {}}}},
	}
	got := Pinned(was, "node-1")
	terms := got.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if len(terms) != 2 || len(terms[0].MatchExpressions) != 1 || len(terms[0].MatchFields) != 1 || terms[1].MatchFields[0].Values[0] != "node-1" || got.PodAffinity == nil {
		t.Errorf("%+v", terms)
	}
	if len(was.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields) > 0 {
		t.Error("the pod's own was changed")
	}
	was.NodeAffinity = &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1}}}
	if got := Pinned(was, "node-1"); len(got.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution) != 1 || got.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		t.Errorf("%+v", got.NodeAffinity)
	}
}

// TestUngatePatch checks that only carma's own gate is removed. The managedFields of a pod are
// dropped if the pod is carma's own.
func TestUngatePatch(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{SchedulingGates: []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}, {Name: Gate}}}}
	if got := UngatePatch(pod, ""); got != `{"metadata":{"managedFields":[{}]},"spec":{"schedulingGates":[{"name":"kueue.x-k8s.io/admission"}]}}` {
		t.Error(got)
	}
	pod.Annotations = map[string]string{NodeKey: "node-1"}
	if got := UngatePatch(pod, "7"); !strings.Contains(got, `"node-1"`) || !strings.Contains(got, `{"metadata":{"resourceVersion":"7"}`) {
		t.Errorf("a Job's: %s", got)
	}
}
