package kubernetes

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"carma/containers"
)

// Names that the admission policy gives to Jobs (configs/kubernetes/components/jobs).
const (
	// jobLabel is on a Job that is annotated for carma, and on its pods.
	jobLabel = "carma.dev/job"
	// ownerKey is the annotation with the user who made a Job. The policy writes it.
	ownerKey = "carma.dev/owner"
	// endedKey is the annotation with the mark of the task for which carma has suspended
	// a Job.
	endedKey = "carma.dev/ended"
	// settingPrefix begins the annotations with a Job's requests.
	settingPrefix = "carma.dev/"
	// jobClaim begins the name of the claim of a Job's pods; the Job's name follows.
	jobClaim = "carma-job-"
)

// jobs reads and suspends the cluster's Jobs, and allocates GPUs for their pods.
type jobs struct {
	c      *client
	claims *claims

	begun sync.Once
	// news signals that a marked Job, or a pod of one, may have changed. The receiver
	// reads all of them, so a repeated signal does no harm.
	news chan struct{}
}

// Jobs are the Jobs that the admission policy has marked, in the namespaces that are
// served. It implements [containers.Jobber].
func (j *jobs) Jobs(ctx context.Context) ([]containers.Job, error) {
	var out []containers.Job
	marked := &metav1.ListOptions{LabelSelector: jobLabel}
	for _, namespace := range j.c.ns.scope {
		var jobs batchv1.JobList
		if err := j.c.jobs(j.c.batch.Get(), types.NamespacedName{Namespace: namespace}).VersionedParams(marked, parameters).Do(ctx).Into(&jobs); err != nil {
			return nil, fail(ctx, "list annotated Jobs", err)
		}
		if len(jobs.Items) == 0 {
			continue
		}
		var pods corev1.PodList
		if err := j.c.pods(j.c.core.Get(), types.NamespacedName{Namespace: namespace}).VersionedParams(marked, parameters).Do(ctx).Into(&pods); err != nil {
			return nil, fail(ctx, "list the pods of annotated Jobs", err)
		}
		waits := map[types.UID]bool{}
		for i := range pods.Items {
			if pod := &pods.Items[i]; waitsForClaim(pod) {
				waits[jobUID(pod)] = true
			}
		}
		for i := range jobs.Items {
			if job := &jobs.Items[i]; job.DeletionTimestamp == nil {
				j := jobOf(job)
				j.Waits = waits[job.UID]
				out = append(out, j)
			}
		}
	}
	return out, nil
}

// jobs is the path of a namespace's Jobs, or of one if it has a name.
func (c *client) jobs(r *rest.Request, at types.NamespacedName) *rest.Request {
	r = r.Namespace(at.Namespace).Resource("jobs")
	if at.Name != "" {
		r = r.Name(at.Name)
	}
	return r
}

// waitsForClaim: the pod is kept by its gate, and no attempt has it.
func waitsForClaim(pod *corev1.Pod) bool {
	return gated(pod) && pod.DeletionTimestamp == nil && labelsOf(pod) == nil
}

// jobUID returns the uid of the Job that made a pod, or empty if none did.
func jobUID(pod *corev1.Pod) types.UID {
	if o := metav1.GetControllerOf(pod); o != nil && o.Kind == "Job" {
		return o.UID
	}
	return ""
}

// jobOf reads a Job.
func jobOf(job *batchv1.Job) containers.Job {
	j := containers.Job{
		JobID:    containers.JobID{Namespace: job.Namespace, Name: job.Name, UID: string(job.UID)},
		Owner:    job.Annotations[ownerKey],
		Settings: map[string]string{}, Cannot: cannot(job), Ended: job.Annotations[endedKey],
		Suspended: job.Spec.Suspend != nil && *job.Spec.Suspend,
	}
	for key, value := range job.Annotations {
		if name, ok := strings.CutPrefix(key, settingPrefix); ok && key != ownerKey && key != endedKey {
			j.Settings[name] = value
		}
	}
	// As the cluster writes amounts: 20Gi, 12G (a billion bytes each).
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

// cannot says why a Job's pods can have no GPUs, or is empty if they can. The admission
// policies refuse such a Job, so it was made before they were installed.
func cannot(job *batchv1.Job) string {
	more := func(n *int32) bool { return n != nil && *n > 1 }
	pod := &job.Spec.Template.Spec
	switch {
	case more(job.Spec.Parallelism), more(job.Spec.Completions):
		return "parallelism and completions must be 1: a Job of carma's is one task; make a Job for each"
	case pod.RestartPolicy != corev1.RestartPolicyNever:
		return "restartPolicy must be Never: a program that is started again in the same pod cannot get more memory"
	case !gated(&corev1.Pod{Spec: *pod}) || claimOf(&corev1.Pod{Spec: *pod}) != jobClaim+job.Name:
		return "its pods have not the gate and the claim that carma's admission policy adds; make it again while configs/kubernetes/components/jobs is installed"
	}
	return ""
}

// SuspendJob implements [containers.Jobber].
func (j *jobs) SuspendJob(ctx context.Context, id containers.JobID, mark string) error {
	patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{"uid": id.UID, "annotations": map[string]string{endedKey: mark}}, "spec": map[string]any{"suspend": true}})
	err := j.c.jobs(j.c.batch.Patch(types.MergePatchType), types.NamespacedName{Namespace: id.Namespace, Name: id.Name}).Body(patch).Do(ctx).Error()
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fail(ctx, "suspend Job "+id.String(), err)
}

// TellJob makes an event of a Job. It implements [containers.Jobber].
func (j *jobs) TellJob(ctx context.Context, id containers.JobID, reason, text string) error {
	digest := sha256.Sum256([]byte(id.UID + reason + text))
	now := metav1.Now()
	e := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: id.Namespace, Name: id.Name + ".carma-" + hex.EncodeToString(digest[:6])},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "batch/v1", Kind: "Job", Namespace: id.Namespace, Name: id.Name, UID: types.UID(id.UID),
		},
		Type: corev1.EventTypeWarning, Reason: reason, Message: text, Source: corev1.EventSource{Component: ours},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
	err := j.c.core.Post().Namespace(id.Namespace).Resource("events").Body(e).Do(ctx).Error()
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return fail(ctx, "make an event of Job "+id.String(), err)
}
