package kubernetes

import (
	"context"
	"errors"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"carma/containers"
	"carma/containers/kubernetes/manifest"
)

// attemptOf returns the spec of an attempt of a Job.
func attemptOf(j *batchv1.Job, n string, bytes int64, gpus ...string) containers.Spec {
	return containers.Spec{
		Name: "carma-x-1-" + n, Image: "ignored", Identity: map[string]string{"carma.task": "1", "carma.attempt": n},
		Job:  &containers.JobID{Namespace: j.Namespace, Name: j.Name, UID: string(j.UID)},
		GPUs: gpus, GPUMemory: bytes, Attach: containers.AttachClaim, Env: []string{"CARMA_TASK=1", "CARMA_ATTEMPT=" + n, "CARMA_GRANT_BYTES=1"},
	}
}

func (c *cluster) theJob(t *testing.T, d *Driver) containers.Job {
	t.Helper()
	all, err := d.Jobs(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	return all[0]
}

func memoryOf(claim *resourcev1.ResourceClaim) int64 {
	q := claim.Spec.Devices.Requests[0].Exactly.Capacity.Requests[manifest.Memory]
	return q.Value()
}

// TestJobPods checks that each pod of a Job becomes an attempt, with a claim that has the Job's
// name and the attempt's size. Gates, labels and finalizers of others are kept, and in the end
// the pod belongs only to the Job again.
func TestJobPods(t *testing.T) {
	c := newCluster(t, toolImage)
	c.offer("node-1", "GPU-a", "GPU-b")
	d := c.driver(t, Options{})
	defer d.Close()
	job := c.job("train", toolImage, []string{"out:CUDA out of memory", "exit:1"})
	if j := c.theJob(t, d); j.Waits || j.Owner != "ada" || j.Memory != 20<<30 || len(j.Settings) > 0 || j.Image != toolImage || j.Cannot != "" || j.Suspended {
		t.Errorf("%+v", j)
	}
	first := attemptOf(job, "1", 20<<30, "GPU-b")
	if _, err := d.Create(t.Context(), first); !errors.Is(err, containers.ErrNoPod) {
		t.Fatalf("without a pod: %v", err)
	}
	pod := c.jobPod(job)
	if !c.theJob(t, d).Waits {
		t.Error("the pod does not wait")
	}
	id, err := d.Create(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := d.Create(t.Context(), first); again != id || err != nil {
		t.Errorf("created again: %s, %v", again, err)
	}
	if c.theJob(t, d).Waits {
		t.Error("a pod that an attempt has waits")
	}
	claim := c.claims["carma-job-train"]
	if claim == nil || memoryOf(claim) != 20<<30 || claim.OwnerReferences[0].UID != pod.UID || !d.c.ns.Made(namespace, claim.Labels) {
		t.Fatalf("claim %+v", claim)
	}
	if pod.Annotations["carma.dev/task"] != "1" || pod.Annotations["carma.dev/attempt"] != "1" || pod.Annotations["carma.dev/gpus"] != "GPU-b" {
		t.Errorf("annotations %v", pod.Annotations)
	}
	found, err := d.List(t.Context(), first.Identity)
	if err != nil || len(found) != 1 || found[0].ID != id || found[0].State != containers.StateCreated {
		t.Errorf("found %+v, %v", found, err)
	}
	if err := d.Start(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if f := pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0]; f.Key != "metadata.name" || !slices.Equal(f.Values, []string{"node-1"}) {
		t.Errorf("node %+v", f)
	}
	exit, err := d.Wait(t.Context(), id)
	if err != nil || exit.Code != 1 {
		t.Fatalf("%+v, %v", exit, err)
	}
	var lines []string
	if err := d.Logs(t.Context(), id, time.Time{}, true, func(_ time.Time, _ containers.Stream, line []byte, _ bool) { lines = append(lines, string(line)) }); err != nil || !slices.Equal(lines, []string{"CUDA out of memory"}) {
		t.Errorf("output %q, %v", lines, err)
	}

	// The replacement has a larger claim of the same name. The objects of the first attempt are
	// removed afterwards, but not the objects of the second.
	next := c.jobPod(job)
	second := attemptOf(job, "2", 40<<30, "GPU-a")
	id2, err := d.Create(t.Context(), second)
	if err != nil || id2 == id {
		t.Fatalf("%s, %v", id2, err)
	}
	if err := d.Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if claim := c.claims["carma-job-train"]; claim == nil || memoryOf(claim) != 40<<30 || claim.OwnerReferences[0].UID != next.UID {
		t.Errorf("claim of the second attempt: %+v", claim)
	}
	if now := c.pods[pod.Name]; now == nil || !slices.Equal(now.Finalizers, []string{batchv1.JobTrackingFinalizer}) || now.DeletionTimestamp != nil || now.Labels[manifest.ManagedBy] != "" {
		t.Errorf("the pod is not the Job's again: %+v", now)
	}
	if all, err := d.List(t.Context(), map[string]string{"carma.task": "1"}); err != nil || len(all) != 1 || all[0].ID != id2 {
		t.Errorf("%+v, %v", all, err)
	}
	if err := d.Start(t.Context(), id2); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Wait(t.Context(), id2); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.Remove(t.Context(), id2), d.Remove(t.Context(), id2)); err != nil {
		t.Fatal(err)
	}
	if pods, claims := c.has(); pods != 2 || claims != 0 {
		t.Errorf("%d pods and %d claims", pods, claims)
	}
}

// TestJobBrokenOff checks that a daemon that dies at any point leaves a pod that has its claim,
// or a pod that another attempt can take with another claim.
func TestJobBrokenOff(t *testing.T) {
	c := newCluster(t, toolImage)
	c.offer("node-1", "GPU-a", "GPU-b")
	d := c.driver(t, Options{})
	defer d.Close()
	job := c.job("train", toolImage, []string{"exit:0"})
	pod := c.jobPod(job)
	dying := http.MethodPatch
	c.mu.Lock()
	c.fault = func(r *http.Request) int {
		if r.Method == dying {
			return http.StatusServiceUnavailable
		}
		return 0
	}
	c.mu.Unlock()
	if _, err := d.Create(t.Context(), attemptOf(job, "1", 20<<30, "GPU-a")); !errors.Is(err, containers.ErrUnavailable) {
		t.Fatalf("create: %v", err)
	}
	if claim := c.claims["carma-job-train"]; claim == nil || manifest.LabelsOf(pod) != nil {
		t.Fatalf("the pod is the attempt's, and its claim is %+v", claim)
	}
	c.mu.Lock()
	c.fault = nil
	c.mu.Unlock()
	second := attemptOf(job, "2", 30<<30, "GPU-b")
	id, err := d.Create(t.Context(), second)
	if err != nil {
		t.Fatal(err)
	}
	if claim := c.claims["carma-job-train"]; memoryOf(claim) != 30<<30 {
		t.Errorf("the second attempt has the first one's claim: %+v", claim)
	}

	// A pod that is not started belongs to the Job again, unchanged, and then to another attempt.
	if err := d.Remove(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if _, claims := c.has(); claims != 0 || !manifest.WaitsForClaim(pod) || len(pod.Annotations) > 0 || !slices.Equal(pod.Finalizers, []string{batchv1.JobTrackingFinalizer}) || pod.Spec.Affinity != nil {
		t.Errorf("%d claims, pod %+v", claims, pod)
	}
	begin(t, d, attemptOf(job, "3", 30<<30, "GPU-a"))
}

// TestJobForeign checks that a claim of somebody else with this name is kept, and that only
// this task has a fault, not the cluster.
func TestJobForeign(t *testing.T) {
	c := newCluster(t, toolImage)
	c.offer("node-1", "GPU-a")
	d := c.driver(t, Options{})
	defer d.Close()
	job := c.job("train", toolImage, nil)
	pod := c.jobPod(job)
	c.claims["carma-job-train"] = &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "carma-job-train"}}
	_, err := d.Create(t.Context(), attemptOf(job, "1", 1<<30, "GPU-a"))
	if fault, ok := errors.AsType[*containers.StartFault](err); !ok || fault.Scope != containers.ScopeTask || !strings.Contains(fault.Remedy, "carma-job-train") {
		t.Errorf("%v", err)
	}
	if manifest.LabelsOf(pod) != nil || c.claims["carma-job-train"] == nil {
		t.Error("the pod was taken, or the claim is gone")
	}
}

// TestJobStates checks that carma reads the end of a Job, and the reasons why it cannot run a
// Job. A Job is suspended once, with one event.
func TestJobStates(t *testing.T) {
	c := newCluster(t)
	d := c.driver(t, Options{})
	defer d.Close()
	condition := func(kind batchv1.JobConditionType) func(*batchv1.Job) {
		return func(j *batchv1.Job) {
			j.Status.Conditions = []batchv1.JobCondition{
				{Type: batchv1.JobSuspended, Status: corev1.ConditionTrue},
				{Type: kind, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded", Message: "Job has reached\nthe limit"},
			}
		}
	}
	two := int32(2)
	for _, is := range []struct {
		edit func(*batchv1.Job)
		want func(containers.Job) bool
	}{
		{condition(batchv1.JobFailed), func(j containers.Job) bool { return j.Failed == "BackoffLimitExceeded: Job has reached; the limit" }},
		{condition(batchv1.JobFailureTarget), func(j containers.Job) bool { return j.Failed != "" }},
		{condition(batchv1.JobComplete), func(j containers.Job) bool { return j.Done && j.Failed == "" }},
		{func(j *batchv1.Job) { j.Annotations["carma.dev/memory"] = "lots" }, func(j containers.Job) bool { return j.Memory == 0 && j.Settings["memory"] == "lots" }},
		{func(j *batchv1.Job) { j.Annotations["carma.dev/gpus"] = "2" }, func(j containers.Job) bool { return j.Settings["gpus"] == "2" && len(j.Settings) == 1 }},
		{func(j *batchv1.Job) { j.Spec.Parallelism = &two }, func(j containers.Job) bool { return strings.Contains(j.Cannot, "parallelism") }},
		{func(j *batchv1.Job) { j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure }, func(j containers.Job) bool { return strings.Contains(j.Cannot, "restartPolicy") }},
		{func(j *batchv1.Job) { j.Spec.Template.Spec.SchedulingGates = nil }, func(j containers.Job) bool { return strings.Contains(j.Cannot, "admission policy") }},
		{func(j *batchv1.Job) { j.Spec.Template.Spec.ResourceClaims = nil }, func(j containers.Job) bool { return strings.Contains(j.Cannot, "admission policy") }},
	} {
		c.job("train", "x", nil, is.edit)
		if got := c.theJob(t, d); !is.want(got) {
			t.Errorf("%+v %q", got.Settings, []string{got.Cannot, got.Failed})
		}
	}
	job := c.job("train", "x", nil)
	id := containers.JobID{Namespace: namespace, Name: "train", UID: string(job.UID)}
	other := id
	other.UID = "another"
	if err := errors.Join(d.SuspendJob(t.Context(), other, "a"), d.SuspendJob(t.Context(), containers.JobID{Namespace: namespace, Name: "gone"}, "a")); err != nil || job.Spec.Suspend != nil {
		t.Errorf("another Job: %v", err)
	}
	if err := d.SuspendJob(t.Context(), id, "mark"); err != nil {
		t.Fatal(err)
	}
	if got := c.theJob(t, d); !got.Suspended || got.Ended != "mark" || len(got.Settings) > 0 {
		t.Errorf("%+v", got)
	}
	for _, text := range []string{"why", "why", "another"} {
		if err := d.TellJob(t.Context(), id, "CarmaRefused", text); err != nil {
			t.Fatal(err)
		}
	}
	if len(c.said) != 2 || c.said[0].InvolvedObject.UID != job.UID || c.said[0].Message != "why" {
		t.Errorf("%+v", c.said)
	}
	c.jobs["train"].DeletionTimestamp = &metav1.Time{Time: time.Now()}
	if all, err := d.Jobs(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("a Job that is being deleted: %+v, %v", all, err)
	}
}

// TestJobNews checks that both watches are opened, and that each signals its changes.
func TestJobNews(t *testing.T) {
	c := newCluster(t)
	opened := make(chan string, 100)
	c.fault = func(r *http.Request) int {
		if r.URL.Query().Get("watch") != "" {
			opened <- path.Base(r.URL.Path)
		}
		return 0
	}
	both := c.driver(t, Options{})
	defer both.Close()
	both.JobNews()
	for want := []string{"jobs", "pods"}; len(want) > 0; {
		kind := <-opened
		want = slices.DeleteFunc(want, func(w string) bool { return w == kind })
	}

	at := types.NamespacedName{Namespace: namespace}
	for _, stream := range []struct {
		of     func(d *Driver) *rest.Request
		change func()
	}{
		{func(d *Driver) *rest.Request { return d.c.jobs(d.c.batch.Get(), at) }, func() { c.job("train", "x", nil) }},
		{func(d *Driver) *rest.Request { return d.c.pods(d.c.core.Get(), at) }, func() { c.jobPod(c.job("train", "x", nil)) }},
	} {
		d := c.driver(t, Options{})
		d.jobs.news = make(chan struct{}, 1)
		ctx, cancel := context.WithCancel(t.Context())
		opened := make(chan bool, 1)
		go func() { opened <- d.jobs.watchOnce(ctx, stream.of(d)) }()
		<-d.jobs.news // the watch is open and has delivered nothing
		stream.change()
		<-d.jobs.news
		cancel()
		if !<-opened {
			t.Error("a stream was not opened")
		}
		d.Close()
	}
}
