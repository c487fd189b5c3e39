package kubernetes

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"carma/containers/kubernetes/manifest"
)

// jobsServed is the fake of the Jobs of a cluster.
type jobsServed struct {
	jobs map[string]*batchv1.Job
	said []corev1.Event
}

func (c *cluster) serveJobs(mux *http.ServeMux) {
	c.jobs = map[string]*batchv1.Job{}
	const jobs = "/apis/batch/v1/namespaces/{ns}/jobs"
	c.watched(mux, jobs, "Job", "batch/v1", func() map[string]metav1.Object {
		out := map[string]metav1.Object{}
		for _, j := range c.jobs {
			out[j.Namespace+"/"+j.Name] = j
		}
		return out
	})
	mux.HandleFunc("PATCH "+jobs+"/{name}", func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		j := c.jobs[keyOf(r)]
		if j == nil {
			notFound(w, "job")
			return
		}
		changed, ok := patched(w, r, j)
		if !ok {
			return
		}
		*j = *changed
		c.touch()
		answer(w, j)
	})
	mux.HandleFunc("POST /api/v1/namespaces/{ns}/events", func(w http.ResponseWriter, r *http.Request) {
		e := corev1.Event{}
		_ = json.NewDecoder(r.Body).Decode(&e)
		c.mu.Lock()
		defer c.mu.Unlock()
		if slices.ContainsFunc(c.said, func(o corev1.Event) bool { return o.Name == e.Name }) {
			refuse(w, http.StatusConflict, metav1.StatusReasonAlreadyExists, "event exists")
			return
		}
		c.said = append(c.said, e)
		answer(w, e)
	})
}

// job makes a Job in the state after the admission policy.
func (c *cluster) job(name, image string, args []string, edit ...func(*batchv1.Job)) *batchv1.Job {
	claim, grace := manifest.JobClaim+name, int64(1)
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID("job-" + name), Labels: map[string]string{manifest.JobLabel: "yes"},
		Annotations: map[string]string{"carma.dev/memory": "20Gi", manifest.OwnerKey: "ada"},
	}}
	j.Spec.Template.Labels = map[string]string{manifest.JobLabel: "yes", batchv1.ControllerUidLabel: string(j.UID), manifest.ManagedBy: "Helm"}
	j.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: &grace,
		SchedulingGates: []corev1.PodSchedulingGate{{Name: manifest.Gate}},
		ResourceClaims:  []corev1.PodResourceClaim{{Name: manifest.GPURef, ResourceClaimName: &claim}},
		Containers: []corev1.Container{
			{Name: "main", Image: image, Args: args, SecurityContext: &corev1.SecurityContext{}}, {Name: manifest.ContainerName, Image: "sidecar"},
		},
	}
	for _, e := range edit {
		e(j)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.jobs[name] = j
	c.touch()
	return j
}

// jobPod makes the next pod of a Job, like the Job controller.
func (c *cluster) jobPod(j *batchv1.Job) *corev1.Pod {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made++
	yes := true
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: j.Namespace, Name: fmt.Sprintf("%s-%d", j.Name, c.made), UID: types.UID(fmt.Sprintf("uid-%d", c.made)),
		CreationTimestamp: metav1.Now(), Labels: maps.Clone(j.Spec.Template.Labels), Finalizers: []string{batchv1.JobTrackingFinalizer},
		OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: j.Name, UID: j.UID, Controller: &yes}},
	}, Spec: *j.Spec.Template.Spec.DeepCopy()}
	pod.Status.Phase = corev1.PodPending
	c.pods[podKey(pod)] = pod
	c.tell("ADDED", pod)
	return pod
}
