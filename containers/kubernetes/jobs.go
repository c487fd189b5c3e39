package kubernetes

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"carma/containers"
)

// Names that the admission policy gives to Jobs (configs/kubernetes/jobs-policy.yaml).
const (
	// jobLabel is on a Job that is annotated for carma, and on its pods.
	jobLabel = "carma.dev/job"
	// ownerKey is the annotation with the user who made a Job. The policy writes it.
	ownerKey = "carma.dev/owner"
	// endedKey is the annotation with the mark of the task for which carma has suspended
	// a Job.
	endedKey = "carma.dev/ended"
	// settingPrefix begins the annotations that say what a Job asks for.
	settingPrefix = "carma.dev/"
	// jobClaim begins the name of the claim of a Job's pods; the Job's name follows.
	jobClaim = "carma-job-"
)

// Jobs are the Jobs that the admission policy has marked, in the namespaces that are
// served. It implements [containers.Jobber].
func (d *Driver) Jobs(ctx context.Context) ([]containers.Job, error) {
	var out []containers.Job
	marked := &metav1.ListOptions{LabelSelector: jobLabel}
	for _, namespace := range d.scope {
		var jobs batchv1.JobList
		if err := d.jobs(d.batch.Get(), types.NamespacedName{Namespace: namespace}).VersionedParams(marked, parameters).Do(ctx).Into(&jobs); err != nil {
			return nil, fail(ctx, "list annotated Jobs", err)
		}
		if len(jobs.Items) == 0 {
			continue
		}
		var pods corev1.PodList
		if err := d.pods(d.core.Get(), types.NamespacedName{Namespace: namespace}).VersionedParams(marked, parameters).Do(ctx).Into(&pods); err != nil {
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
func (d *Driver) jobs(r *rest.Request, at types.NamespacedName) *rest.Request {
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

// jobUID is the uid of the Job that made a pod; empty: none did.
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

// cannot says why a Job's pods can have no GPUs; empty: they can. The policies refuse
// such a Job; it was made while they were not there.
func cannot(job *batchv1.Job) string {
	more := func(n *int32) bool { return n != nil && *n > 1 }
	pod := &job.Spec.Template.Spec
	switch {
	case more(job.Spec.Parallelism), more(job.Spec.Completions):
		return "parallelism and completions must be 1: a Job of carma's is one task; make a Job for each"
	case pod.RestartPolicy != corev1.RestartPolicyNever:
		return "restartPolicy must be Never: a program that is started again in the same pod cannot get more memory"
	case !gated(&corev1.Pod{Spec: *pod}) || claimOf(&corev1.Pod{Spec: *pod}) != jobClaim+job.Name:
		return "its pods have not the gate and the claim that carma's admission policy adds; make it again while configs/kubernetes/jobs-policy.yaml is applied"
	}
	return ""
}

// SuspendJob implements [containers.Jobber].
func (d *Driver) SuspendJob(ctx context.Context, id containers.JobID, mark string) error {
	patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{"uid": id.UID, "annotations": map[string]string{endedKey: mark}}, "spec": map[string]any{"suspend": true}})
	err := d.jobs(d.batch.Patch(types.MergePatchType), types.NamespacedName{Namespace: id.Namespace, Name: id.Name}).Body(patch).Do(ctx).Error()
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fail(ctx, "suspend Job "+id.String(), err)
}

// TellJob makes an event of a Job. It implements [containers.Jobber].
func (d *Driver) TellJob(ctx context.Context, id containers.JobID, reason, text string) error {
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
	err := d.core.Post().Namespace(id.Namespace).Resource("events").Body(e).Do(ctx).Error()
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return fail(ctx, "make an event of Job "+id.String(), err)
}

// podOf is the pod of a Job's attempt: the one that it has, or one that waits.
func (d *Driver) podOf(ctx context.Context, what string, spec containers.Spec) (pod *corev1.Pod, has bool, err error) {
	var list corev1.PodList
	own := &metav1.ListOptions{LabelSelector: batchv1.ControllerUidLabel + "=" + spec.Job.UID}
	if err := d.pods(d.core.Get(), types.NamespacedName{Namespace: spec.Job.Namespace}).VersionedParams(own, parameters).Do(ctx).Into(&list); err != nil {
		return nil, false, fail(ctx, what, err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	for i := range list.Items {
		if p := &list.Items[i]; string(jobUID(p)) != spec.Job.UID {
			continue
		} else if spec.Recognize(p.Name, labelsOf(p)) == nil {
			return p, true, nil
		} else if waitsForClaim(p) && pod == nil {
			pod = p
		}
	}
	if pod == nil {
		err = fmt.Errorf("%s: %w", what, containers.ErrNoPod)
	}
	return pod, false, err
}

// take books GPUs for a Job's pod, and makes it that of an attempt. The pod stays gated.
// The claim comes first: an attempt's pod has one, whenever a daemon dies.
func (d *Driver) take(ctx context.Context, what string, spec containers.Spec) (string, error) {
	for {
		pod, has, err := d.podOf(ctx, what, spec)
		if err != nil {
			return "", err
		}
		if has && (ended(pod) || !gated(pod)) {
			return idOf(pod), nil
		}
		at, err := d.find(ctx, spec.GPUs)
		if err != nil {
			return "", fmt.Errorf("%s: %w", what, err)
		}
		claim := makeClaim(spec, at, pod)
		claim.Name, claim.Labels = claimOf(pod), d.clusterLabels(spec.AllLabels())
		err = d.book(ctx, what, claim, func(old *resourcev1.ResourceClaim) bool { return spec.Recognize(old.Name, old.Labels) == nil })
		if errors.Is(err, containers.ErrTaken) {
			return "", &containers.StartFault{Scope: containers.ScopeTask, Code: "claim-taken",
				Cause: "another claim has the name that the Job's pod waits for", Remedy: "kubectl delete resourceclaim " + claim.Name, Text: err.Error()}
		}
		if err != nil {
			return "", err
		}
		if has {
			return idOf(pod), nil
		}
		patch, err := d.taking(spec, pod, at)
		if err != nil {
			return "", fmt.Errorf("%s: %w", what, err)
		}
		made, err := d.patchPod(ctx, pod, patch)
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			continue // it was changed, or is gone
		}
		if err != nil {
			return "", fail(ctx, what, err)
		}
		return idOf(made), nil
	}
}

// nodeKey is the annotation of a Job's pod with the node of its GPUs.
const nodeKey = "carma.dev/node"

// told are the annotations from which the policy has the pod's variables made.
var told = map[string]string{
	"CARMA_TASK": "carma.dev/task", "CARMA_ATTEMPT": "carma.dev/attempt", "CARMA_GRANT_BYTES": "carma.dev/grant-bytes", visible: "carma.dev/gpus",
}

// taking is the change that makes a pod an attempt's.
func (d *Driver) taking(spec containers.Spec, pod *corev1.Pod, at []place) (string, error) {
	all, err := json.Marshal(spec.AllLabels())
	if err != nil {
		return "", err
	}
	notes := map[string]string{labelsKey: string(all), told[visible]: strings.Join(spec.GPUs, ",")}
	if len(at) > 0 {
		notes[nodeKey] = at[0].node
	}
	for _, kv := range spec.Env {
		if name, value, _ := strings.Cut(kv, "="); told[name] != "" && name != visible {
			notes[told[name]] = value
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "resourceVersion": pod.ResourceVersion, "annotations": notes,
		"labels": d.clusterLabels(spec.AllLabels()), "finalizers": append(slices.Clone(pod.Finalizers), holder),
	}})
	return string(patch), err
}

// leaving is the change that lets a Job's pod go: it is no attempt's any more. One that
// has not run may be another's.
func leaving(pod *corev1.Pod) (string, error) {
	notes := map[string]any{}
	if gated(pod) {
		for _, key := range told {
			notes[key] = nil
		}
		notes[labelsKey], notes[nodeKey] = nil, nil
	}
	others := slices.DeleteFunc(slices.Clone(pod.Finalizers), func(f string) bool { return f == holder })
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.UID, "finalizers": others, "annotations": notes, "labels": map[string]any{managedBy: nil, daemonKey: nil},
	}})
	return string(patch), err
}

// letGo gives the GPUs of a Job's pod back, and leaves the pod to its Job.
func (d *Driver) letGo(ctx context.Context, what string, pod *corev1.Pod) error {
	if err := d.unbookOf(ctx, what, pod); err != nil {
		return err
	}
	patch, err := leaving(pod)
	if err != nil {
		return err
	}
	if _, err := d.patchPod(ctx, pod, patch); err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fail(ctx, what, err)
	}
	return nil
}
