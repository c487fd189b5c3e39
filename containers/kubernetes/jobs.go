package kubernetes

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"carma/containers"
	"carma/containers/kubernetes/manifest"
)

// jobs reads and suspends the cluster's Jobs, and allocates GPUs for their pods.
type jobs struct {
	c      *client
	claims *claims

	begun sync.Once
	// news signals that a marked Job, or a pod of one, may have changed. The receiver reads all
	// Jobs, so repeated signals are harmless.
	news chan struct{}
}

// Jobs returns the Jobs that the admission policy has marked, in the namespaces that the daemon
// serves. It implements [containers.Jobber].
func (j *jobs) Jobs(ctx context.Context) ([]containers.Job, error) {
	var out []containers.Job
	marked := &metav1.ListOptions{LabelSelector: manifest.JobLabel}
	for _, namespace := range j.c.ns.Scope() {
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
			if pod := &pods.Items[i]; manifest.WaitsForClaim(pod) {
				waits[manifest.JobUID(pod)] = true
			}
		}
		for i := range jobs.Items {
			if job := &jobs.Items[i]; job.DeletionTimestamp == nil {
				j := manifest.JobOf(job)
				j.Waits = waits[job.UID]
				out = append(out, j)
			}
		}
	}
	return out, nil
}

// SuspendJob implements [containers.Jobber].
func (j *jobs) SuspendJob(ctx context.Context, id containers.JobID, mark string) error {
	patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{"uid": id.UID, "annotations": map[string]string{manifest.EndedKey: mark}}, "spec": map[string]any{"suspend": true}})
	err := j.c.jobs(j.c.batch.Patch(types.MergePatchType), types.NamespacedName{Namespace: id.Namespace, Name: id.Name}).Body(patch).Do(ctx).Error()
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fail(ctx, "suspend Job "+id.String(), err)
}

// TellJob writes an event about a Job. It implements [containers.Jobber].
func (j *jobs) TellJob(ctx context.Context, id containers.JobID, reason, text string) error {
	digest := sha256.Sum256([]byte(id.UID + reason + text))
	now := metav1.Now()
	e := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: id.Namespace, Name: id.Name + ".carma-" + hex.EncodeToString(digest[:6])},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "batch/v1", Kind: "Job", Namespace: id.Namespace, Name: id.Name, UID: types.UID(id.UID),
		},
		Type: corev1.EventTypeWarning, Reason: reason, Message: text, Source: corev1.EventSource{Component: manifest.Owner},
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
	}
	err := j.c.core.Post().Namespace(id.Namespace).Resource("events").Body(e).Do(ctx).Error()
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return fail(ctx, "make an event of Job "+id.String(), err)
}

// JobNews returns a channel that receives a token at each change, and whenever a change may
// have been missed. It implements [containers.Jobber].
func (j *jobs) JobNews() <-chan struct{} {
	j.begun.Do(func() {
		j.news = make(chan struct{}, 1)
		for _, namespace := range j.c.ns.Scope() {
			at := types.NamespacedName{Namespace: namespace}
			j.c.tasks.Go(func() { j.watchMarked(func() *rest.Request { return j.c.jobs(j.c.batch.Get(), at) }) })
			j.c.tasks.Go(func() { j.watchMarked(func() *rest.Request { return j.c.pods(j.c.core.Get(), at) }) })
		}
	})
	return j.news
}

// Pauses before a broken watch is opened again.
const (
	newsAgain   = again
	newsAtMost  = 30 * time.Second
	newsRefused = 2 // factor after each failure
)

// watchMarked reads watches of marked objects until the driver is closed.
func (j *jobs) watchMarked(of func() *rest.Request) {
	pause := newsAgain
	for j.c.ctx.Err() == nil {
		if j.watchOnce(j.c.ctx, of()) {
			pause = newsAgain
		} else {
			pause = min(pause*newsRefused, newsAtMost)
		}
		poke(j.news)
		select {
		case <-j.c.ctx.Done():
		case <-time.After(pause):
		}
	}
}

// watchOnce reads one watch to its end. It returns false if the watch could not be opened.
func (j *jobs) watchOnce(ctx context.Context, of *rest.Request) bool {
	events, err := of.VersionedParams(&metav1.ListOptions{Watch: true, LabelSelector: manifest.JobLabel}, parameters).Watch(ctx)
	if err != nil {
		return false
	}
	defer events.Stop()
	poke(j.news)
	for e := range events.ResultChan() {
		if e.Type == watch.Error {
			break
		}
		poke(j.news)
	}
	return true
}
