//go:build kubernetes

package test

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"carma/runner/api"
	"carma/runner/verify"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

const labJobs = "/apis/batch/v1/namespaces/lab/jobs"

// job makes an annotated Job of the suite's program. more contains further fields of its spec.
func (c *cluster) job(name, memory, more string, args ...string) {
	c.t.Helper()
	c.must(http.MethodPost, labJobs, jobText(name, memory, more, args...))
}

func jobText(name, memory, more string, args ...string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"annotations":{"carma.dev/memory":%q,"carma.dev/owner":"somebody else"}},"spec":{%s"template":{"spec":{
		"restartPolicy":"Never","containers":[{"name":"train","image":%q,"args":["%s"]}]}}}}`, name, memory, more, tool, strings.Join(args, `","`))
}

// claimed returns the memory of a Job's pod and the uid of its claim, or 0 if there is
// none.
func (c *cluster) claimed(job string) (bytes int64, uid string) {
	c.t.Helper()
	claim, ok := get[resourcev1.ResourceClaim](c, "/apis/resource.k8s.io/v1/namespaces/lab/resourceclaims/carma-job-"+job)
	if !ok || claim.DeletionTimestamp != nil {
		return 0, ""
	}
	q := claim.Spec.Devices.Requests[0].Exactly.Capacity.Requests["memory"]
	return q.Value(), string(claim.UID)
}

// refusal returns the text of the only CarmaRefused event of a Job, or empty if there is
// none.
func (c *cluster) refusal(job string) string {
	c.t.Helper()
	list, _ := get[corev1.EventList](c, "/api/v1/namespaces/lab/events?fieldSelector=involvedObject.kind%3DJob,reason%3DCarmaRefused,involvedObject.name%3D"+job)
	if len(list.Items) != 1 {
		return ""
	}
	return list.Items[0].Message
}

// podsOf returns the pods of a Job.
func (c *cluster) podsOf(job string) []corev1.Pod {
	c.t.Helper()
	list, _ := get[corev1.PodList](c, "/api/v1/namespaces/lab/pods?labelSelector=batch.kubernetes.io%2Fjob-name%3D"+job)
	return list.Items
}

// TestJobs checks on the real apiserver with its policies, Job controller, scheduler and
// kubelet that annotated Jobs are tasks. A Job that was made without a daemon is adopted. A
// running Job continues while the daemon is killed. After a GPU OOM the daemon is killed, and
// the replacement gets a larger claim. The end of a Job ends its task, and stopping a task
// suspends its Job. No attempt exists twice, and no claim is left.
func TestJobs(t *testing.T) {
	c := newCluster(t)
	c.bringTool()
	c.namespace("lab")
	c.apply(rendered(t, "kustomize", "../../../configs/kubernetes/components/jobs"), false)
	c.until("the policy gates Jobs", func() bool {
		_, answer := c.send(http.MethodPost, labJobs+"?dryRun=All", "application/json", []byte(jobText("dry", "1Gi", "", "exit:0")))
		return strings.Contains(string(answer), "carma.dev/start")
	})
	for says, text := range map[string]string{
		"parallelism and completions must be 1": jobText("x", "1Gi", `"parallelism":2,`, "exit:0"),
		"restartPolicy must be Never":           strings.Replace(jobText("x", "1Gi", "", "exit:0"), `"Never"`, `"OnFailure"`, 1),
		"needs a name of its own":               strings.Replace(jobText("x-", "1Gi", "", "exit:0"), `"name"`, `"generateName"`, 1),
		"are carma's own":                       strings.Replace(jobText("x", "1Gi", "", "exit:0"), "carma.dev/memory", "other", 1),
	} {
		// Each policy takes effect after a delay of its own.
		c.until("a Job is refused: "+says, func() bool {
			code, answer := c.send(http.MethodPost, labJobs+"?dryRun=All", "application/json", []byte(text))
			return code == http.StatusUnprocessableEntity && strings.Contains(string(answer), says)
		})
	}
	agent := c.newAgent("lab", "dgx-station-a100")
	agent.start(offers)
	c.job("early", "2Gi", "", "out:job-early", "block:0")
	d := c.newDaemon("lab")
	d.start(ready)
	early := d.runs("lab/early")
	if early.User != "admin" {
		t.Errorf("the owner is %s", early.User)
	}
	if bytes, _ := c.claimed("early"); bytes != 2<<30 {
		t.Errorf("its claim has %d bytes", bytes)
	}

	// A wrong annotation is reported, and then corrected.
	c.job("wrong", "lots", "", "out:job-wrong", "block:7")
	c.until("the owner is told", func() bool {
		return c.refusal("wrong") == `annotation carma.dev/memory: "lots" is not an amount of memory; write for example 20Gi`
	})
	c.must(http.MethodPatch, labJobs+"/wrong", `{"metadata":{"annotations":{"carma.dev/memory":"1Gi","carma.dev/owner":"me"}}}`)
	if wrong := d.runs("lab/wrong"); wrong.User != "admin" {
		t.Errorf("the owner is %s", wrong.User)
	}

	// A GPU OOM. The daemon is killed while the Job makes the next pod.
	c.job("grows", "1Gi", "", "out:torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "exit:1")
	d.sees("lab/grows", "it waits for its Job", func(t api.Task) bool { return t.Phase == "held" })
	d.end(syscall.SIGKILL)
	c.until("the Job has made its next pod", func() bool { return len(c.podsOf("grows")) == 2 })
	if again := c.podsOf("grows"); len(again) == 2 && len(again[0].Spec.SchedulingGates)+len(again[1].Spec.SchedulingGates) != 1 {
		t.Errorf("gates of the two pods: %+v, %+v", again[0].Spec.SchedulingGates, again[1].Spec.SchedulingGates)
	}
	d.start(ready)
	grown := d.sees("lab/grows", "its second attempt ends", func(t api.Task) bool { return len(t.Attempts) > 1 && t.Attempts[1].Outcome != "" })
	if a := grown.Attempts; a[0].Outcome != "gpu-oom" || a[1].Outcome != "gpu-oom" || a[0].Grant != 1<<30 || a[1].Grant <= a[0].Grant {
		t.Errorf("attempts %+v", a)
	}
	if a := d.runs("lab/early"); len(a.Attempts) != 1 || len(c.podsOf("early")) != 1 {
		t.Errorf("the task that ran: %+v", a.Attempts)
	}
	if _, err := d.api.Stop(t.Context(), "lab/grows", api.StopRequest{}); err != nil {
		t.Fatal(err)
	}
	c.until("the Job of the task that was stopped is suspended", func() bool {
		j, ok := get[batchv1.Job](c, labJobs+"/grows")
		return ok && j.Spec.Suspend != nil && *j.Spec.Suspend && j.Status.Active == 0
	})

	// The end of a Job ends its task.
	c.job("limit", "1Gi", `"backoffLimit":0,`, "exit:3")
	if limit := d.sees("lab/limit", "its end", func(t api.Task) bool { return t.Finished() }); limit.Phase != "failed" || !strings.Contains(limit.Reason, "its Job has failed: BackoffLimitExceeded") || len(limit.Attempts) != 1 {
		t.Errorf("%s (%s): %+v", limit.Phase, limit.Reason, limit.Attempts)
	}
	c.must(http.MethodPatch, labJobs+"/wrong", `{"spec":{"suspend":true}}`)
	if wrong := d.sees("lab/wrong", "its end", func(t api.Task) bool { return t.Finished() }); wrong.Phase != "cancelled" || wrong.Reason != "its Job was suspended" {
		t.Errorf("%s (%s)", wrong.Phase, wrong.Reason)
	}
	c.job("deleted", "1Gi", "", "out:job-deleted", "block:7")
	d.runs("lab/deleted")
	c.must(http.MethodDelete, labJobs+"/deleted?propagationPolicy=Background", "")
	if gone := d.sees("lab/deleted", "its end", func(t api.Task) bool { return t.Finished() }); gone.Phase != "cancelled" || gone.Reason != "its Job was deleted" {
		t.Errorf("%s (%s)", gone.Phase, gone.Reason)
	}

	c.finish("job-early")
	d.ends("lab/early", 1)
	c.until("the Job is complete", func() bool {
		j, ok := get[batchv1.Job](c, labJobs+"/early")
		return ok && j.Status.Succeeded == 1
	})
	c.empty("lab")
	d.end(syscall.SIGTERM)
	if v, err := verify.Journal(d.root+"/d", "test"); err != nil || len(v.Faults) > 0 {
		t.Errorf("the journal: %+v, %v", v.Faults, err)
	}
}
