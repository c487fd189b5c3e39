package manifest

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"carma/containers"
)

// NodeKey is the annotation of a Job's pod with the node of its GPUs.
const NodeKey = "carma.dev/node"

// jobAnnotations maps annotations to the environment variables that the policy makes from them
// in the pod.
var jobAnnotations = map[string]string{
	"CARMA_TASK": "carma.dev/task", "CARMA_ATTEMPT": "carma.dev/attempt", "CARMA_GRANT_BYTES": "carma.dev/grant-bytes", VisibleGPUs: "carma.dev/gpus",
}

// BindPatch returns the patch that assigns a Job's pod to an attempt.
func (n *Namespaces) BindPatch(spec containers.Spec, pod *corev1.Pod, at []Place) (string, error) {
	all, err := json.Marshal(spec.AllLabels())
	if err != nil {
		return "", err
	}
	notes := map[string]string{LabelsKey: string(all), jobAnnotations[VisibleGPUs]: strings.Join(spec.GPUs, ",")}
	if len(at) > 0 {
		notes[NodeKey] = at[0].Node
	}
	for _, kv := range spec.Env {
		if name, value, _ := strings.Cut(kv, "="); jobAnnotations[name] != "" && name != VisibleGPUs {
			notes[jobAnnotations[name]] = value
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "resourceVersion": pod.ResourceVersion, "annotations": notes,
		"labels": n.ClusterLabels(spec.AllLabels()), "finalizers": append(slices.Clone(pod.Finalizers), Finalizer),
	}})
	return string(patch), err
}

// ReleasePatch returns the patch that removes a Job's pod from its attempt. A pod that has not
// run may be assigned to another attempt.
func ReleasePatch(pod *corev1.Pod) (string, error) {
	notes := map[string]any{}
	if Gated(pod) {
		for _, key := range jobAnnotations {
			notes[key] = nil
		}
		notes[LabelsKey], notes[NodeKey] = nil, nil
	}
	others := slices.DeleteFunc(slices.Clone(pod.Finalizers), func(f string) bool { return f == Finalizer })
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "finalizers": others, "annotations": notes, "labels": map[string]any{ManagedBy: nil, DaemonKey: nil},
	}})
	return string(patch), err
}

// Names that the admission policy gives to Jobs (configs/kubernetes/components/jobs).
const (
	// JobLabel is the label of a Job that is annotated for carma, and of its pods.
	JobLabel = "carma.dev/job"
	// OwnerKey is the annotation with the user who made a Job. The policy writes it.
	OwnerKey = "carma.dev/owner"
	// EndedKey is the annotation that carma sets on a Job when it suspends the Job because its
	// task has ended.
	EndedKey = "carma.dev/ended"
	// settingPrefix is the prefix of the annotations with a Job's requests.
	settingPrefix = "carma.dev/"
	// JobClaim is the prefix of the name of a claim for a Job's pods. The Job's name follows.
	JobClaim = "carma-job-"
)

// WaitsForClaim reports whether carma's gate holds a pod that belongs to no attempt.
func WaitsForClaim(pod *corev1.Pod) bool {
	return Gated(pod) && pod.DeletionTimestamp == nil && LabelsOf(pod) == nil
}

// JobUID returns the uid of the Job that made a pod, or empty if no Job made it.
func JobUID(pod *corev1.Pod) types.UID {
	if o := metav1.GetControllerOf(pod); o != nil && o.Kind == "Job" {
		return o.UID
	}
	return ""
}

// JobOf converts a Job.
func JobOf(job *batchv1.Job) containers.Job {
	j := containers.Job{
		JobID:    containers.JobID{Namespace: job.Namespace, Name: job.Name, UID: string(job.UID)},
		Owner:    job.Annotations[OwnerKey],
		Settings: map[string]string{}, Cannot: cannot(job), Ended: job.Annotations[EndedKey],
		Suspended: job.Spec.Suspend != nil && *job.Spec.Suspend,
	}
	for key, value := range job.Annotations {
		if name, ok := strings.CutPrefix(key, settingPrefix); ok && key != OwnerKey && key != EndedKey {
			j.Settings[name] = value
		}
	}
	// The unit is the cluster's: 20Gi, or 12G for 12 billion bytes.
	if q, err := resource.ParseQuantity(j.Settings["memory"]); err == nil && q.Sign() > 0 {
		j.Memory = q.Value()
		delete(j.Settings, "memory")
	}
	if all := job.Spec.Template.Spec.Containers; len(all) > 0 {
		c := &all[0]
		j.Image, j.Entrypoint, j.Command = c.Image, c.Command, c.Args
		for _, e := range c.Env {
			if e.ValueFrom == nil {
				j.Env = append(j.Env, e.Name+"="+e.Value)
			}
		}
	}
	for _, c := range job.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		switch c.Type {
		case batchv1.JobComplete, batchv1.JobSuccessCriteriaMet:
			j.Done = true
		case batchv1.JobFailed, batchv1.JobFailureTarget:
			j.Failed = strings.TrimSuffix(cmp.Or(c.Reason, "Failed")+": "+containers.CleanMessage(c.Message), ": ")
		}
	}
	return j
}

// cannot returns the reason why a Job's pods can have no GPUs, or empty if they can. The
// admission policies refuse such a Job, so it was made before they were installed.
func cannot(job *batchv1.Job) string {
	more := func(n *int32) bool { return n != nil && *n > 1 }
	pod := &job.Spec.Template.Spec
	switch {
	case more(job.Spec.Parallelism), more(job.Spec.Completions):
		return "parallelism and completions must be 1: a Job of carma's is one task; make a Job for each"
	case pod.RestartPolicy != corev1.RestartPolicyNever:
		return "restartPolicy must be Never: a program that is started again in the same pod cannot get more memory"
	case !Gated(&corev1.Pod{Spec: *pod}) || ClaimOf(&corev1.Pod{Spec: *pod}) != JobClaim+job.Name:
		return "its pods have not the gate and the claim that carma's admission policy adds; make it again while configs/kubernetes/components/jobs is installed"
	}
	return ""
}
