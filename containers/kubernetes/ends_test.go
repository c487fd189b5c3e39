package kubernetes

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"carma/containers"
	"carma/containers/kubernetes/manifest"
)

// TestEnds checks how pods end that their program did not end.
func TestEnds(t *testing.T) {
	yes := corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI"}
	over := func(code int32, reason string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Phase = corev1.PodFailed
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, FinishedAt: metav1.Now()}}
		}
	}
	both := func(all ...func(*corev1.Pod)) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			for _, f := range all {
				f(p)
			}
		}
	}
	long := metav1.NewTime(time.Now().Add(-2 * manifest.LostAfter))
	for what, tc := range map[string]struct {
		edit func(*corev1.Pod)
		want containers.Class
		gone bool
	}{
		"host memory":  {edit: over(137, "OOMKilled"), want: containers.ClassHostOOM},
		"its own":      {edit: over(3, "Error"), want: containers.ClassProgram},
		"node drained": {edit: both(over(143, "Error"), func(p *corev1.Pod) { p.Status.Conditions = append(p.Status.Conditions, yes) }), want: containers.ClassInfrastructure},
		"evicted": {edit: func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason, p.Status.ContainerStatuses = corev1.PodFailed, "Evicted", nil
		}, want: containers.ClassInfrastructure},
		"kubelet forgot it":    {edit: over(137, "ContainerStatusUnknown"), want: containers.ClassInfrastructure},
		"node does not answer": {edit: func(p *corev1.Pod) { p.DeletionTimestamp, p.Status.Conditions = &long, []corev1.PodCondition{yes} }, want: containers.ClassInfrastructure},
		"node refuses it": {edit: func(p *corev1.Pod) {
			p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfcpu", Message: "Node didn't have enough resource"}
		}, want: containers.ClassInfrastructure},
		"kubectl delete": {edit: both(func(p *corev1.Pod) {
			now, grace := metav1.Now(), int64(0)
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &now, &grace
		}, over(143, "Error")), gone: true},
	} {
		t.Run(what, func(t *testing.T) {
			c := newCluster(t, toolImage)
			d := c.driver(t, Options{})
			defer d.Close()
			id := begin(t, d, task("x", "block:0"))
			c.change("x", tc.edit)
			exit, err := d.Wait(t.Context(), id)
			if tc.gone {
				if !errors.Is(err, containers.ErrNotFound) {
					t.Errorf("%+v, %v, want %v", exit, err, containers.ErrNotFound)
				}
				return
			}
			if v := containers.Classify(exit, nil, containers.Facts{}); err != nil || v.Class != tc.want {
				t.Errorf("%+v, %v: %s, want %s", exit, err, v.Class, tc.want)
			}
		})
	}
}
