package manifest

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"carma/containers"
)

// LostAfter is the time after which a deleted pod counts as lost, because its node does not
// answer. It begins when the pod should have ended.
const LostAfter = time.Minute

// Gated reports whether the scheduling gate still holds a pod.
func Gated(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.SchedulingGates, func(g corev1.PodSchedulingGate) bool { return g.Name == Gate })
}

// ProgramIn returns the name of the container that runs the program. In a Job's pod it is the
// first container.
func ProgramIn(pod *corev1.Pod) string {
	if MadeByJob(pod) && len(pod.Spec.Containers) > 0 {
		return pod.Spec.Containers[0].Name
	}
	return ContainerName
}

// MadeByJob reports whether a Job made the pod.
func MadeByJob(pod *corev1.Pod) bool { return pod.Labels[JobLabel] != "" }

// ClaimOf returns the name of a pod's claim, or empty if it has none.
func ClaimOf(pod *corev1.Pod) string {
	for _, c := range pod.Spec.ResourceClaims {
		if c.Name == GPURef && c.ResourceClaimName != nil {
			return *c.ResourceClaimName
		}
	}
	return ""
}

// Status returns the state of the pod's container, or nil if the kubelet has reported
// none.
func Status(pod *corev1.Pod) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == ProgramIn(pod) {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}

// Running reports whether a pod's program runs.
func Running(pod *corev1.Pod) bool { s := Status(pod); return s != nil && s.State.Running != nil }

// Waiting returns the kubelet's reason why the container does not run yet, or nil if it has
// reported none.
func Waiting(pod *corev1.Pod) *corev1.ContainerStateWaiting {
	if s := Status(pod); s != nil {
		return s.State.Waiting
	}
	return nil
}

// StateOf returns a pod's state as the state of a container.
func StateOf(pod *corev1.Pod) containers.State {
	switch {
	case pod.Annotations[FaultKey] != "":
		return containers.StateCreated
	case Ended(pod):
		return containers.StateExited
	case Running(pod):
		return containers.StateRunning
	}
	return containers.StateCreated
}

// Ended reports whether a pod has ended, see [ExitOf].
func Ended(pod *corev1.Pod) bool { _, over := ExitOf(pod); return over }

// DeletedByOthers reports whether somebody else deleted the pod before it had ended.
func DeletedByOthers(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp == nil || pod.Annotations[StopKey] != "" || pod.Annotations[FaultKey] != "" || disrupted(pod) {
		return false
	}
	s := Status(pod)
	over := s != nil && s.State.Terminated != nil
	if over && s.State.Terminated.ExitCode == 0 {
		return false
	}
	// The deletion was requested one grace period before the pod must have ended.
	asked := pod.DeletionTimestamp.Time
	if grace := pod.DeletionGracePeriodSeconds; grace != nil {
		asked = asked.Add(-time.Duration(*grace) * time.Second)
	}
	return !over || !s.State.Terminated.FinishedAt.Time.Before(asked)
}

// disrupted reports whether the cluster ended the pod for a reason outside the program: the
// node was drained or is gone, or another pod preempted it.
func disrupted(pod *corev1.Pod) bool {
	if pod.Status.Reason == "Evicted" || pod.Status.Reason == "NodeLost" || pod.Status.Reason == "Terminated" || pod.Status.Reason == "NodeShutdown" {
		return true
	}
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
	})
}

// ExitOf returns the exit of a pod, or false if it has not ended.
func ExitOf(pod *corev1.Pod) (containers.Exit, bool) {
	if fault := pod.Annotations[FaultKey]; fault != "" {
		return containers.Exit{Code: 127, Error: fault}, true
	}
	if s := Status(pod); s != nil && s.State.Terminated != nil {
		return terminated(pod, s.State.Terminated), true
	}
	lost := containers.Exit{Code: 255, Lost: true}
	if s := Status(pod); s != nil && s.State.Running != nil {
		lost.Started = s.State.Running.StartedAt.UTC()
	}
	lost.Finished = lost.Started
	switch {
	case pod.Status.Phase == corev1.PodFailed && (disrupted(pod) || !lost.Started.IsZero()):
		return lost, true
	case pod.Status.Phase == corev1.PodFailed && pod.Annotations[StopKey] == "":
		return containers.Exit{Code: 127, Error: nodeRefused + containers.CleanMessage(strings.TrimSpace(pod.Status.Reason+" "+pod.Status.Message))}, true
	case pod.DeletionTimestamp == nil:
		return containers.Exit{}, false
	case pod.Status.Phase == corev1.PodFailed, pod.Spec.NodeName == "": // it never ran
		return containers.Exit{Code: 137, Finished: pod.DeletionTimestamp.UTC()}, true
	case time.Since(pod.DeletionTimestamp.Time) > LostAfter:
		return lost, true
	}
	return containers.Exit{}, false
}

// terminated converts the termination that the kubelet reports.
func terminated(pod *corev1.Pod, t *corev1.ContainerStateTerminated) containers.Exit {
	e := containers.Exit{Code: int(t.ExitCode), Started: t.StartedAt.UTC(), Finished: t.FinishedAt.UTC()}
	switch t.Reason {
	case "StartError", "ContainerCannotRun":
		return containers.Exit{Code: 127, Error: containers.CleanMessage(t.Message)}
	case "OOMKilled":
		e.OOMKilled = true
	case "ContainerStatusUnknown":
		e.Code, e.Lost = 255, true
	}
	if e.Code != 0 && disrupted(pod) {
		e.Code, e.Lost = 255, true
	}
	if e.Started.After(e.Finished) {
		e.Started = e.Finished
	}
	return e
}

// nodeRefused is the prefix of the message about a pod that its node refused. The table of
// start failures contains it.
const nodeRefused = "the node refused the pod: "

// GPUsOf returns the UUIDs of the GPUs for which carma made a pod.
func GPUsOf(pod *corev1.Pod) []string {
	if uuids := pod.Annotations[jobAnnotations[VisibleGPUs]]; uuids != "" {
		return strings.Split(uuids, ",")
	}
	for _, c := range pod.Spec.Containers {
		for _, e := range c.Env {
			if c.Name == ContainerName && e.Name == VisibleGPUs && e.Value != "void" {
				return strings.Split(e.Value, ",")
			}
		}
	}
	return nil
}
