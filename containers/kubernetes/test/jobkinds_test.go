//go:build kubernetes

package test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// jobAsking makes a Job with only these annotations.
func jobAsking(t *testing.T, name string, annotations map[string]string, args ...string) string {
	t.Helper()
	var job map[string]any
	if err := json.Unmarshal([]byte(jobText(name, "", "", args...)), &job); err != nil {
		t.Fatal(err)
	}
	job["metadata"] = map[string]any{"name": name, "annotations": annotations}
	text, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// complete waits until a Job has succeeded with its first pod.
func (c *cluster) complete(job string) {
	c.t.Helper()
	c.until("Job "+job+" is complete", func() bool {
		j, ok := get[batchv1.Job](c, labJobs+"/"+job)
		return ok && j.Status.Succeeded == 1
	})
	if pods := c.podsOf(job); len(pods) != 1 {
		c.t.Errorf("Job %s has made %d pods", job, len(pods))
	}
}

// TestJobAsks runs Jobs whose request is not an amount of memory, from kubectl to their end on
// the real cluster. One names a model, and its claim has carma's estimate. One requests 2 GPUs,
// and has one claim with two devices of its node, which are named in its program's environment.
// One requests more GPUs than a node has, and its owner gets an event with that reason.
func TestJobAsks(t *testing.T) {
	c := newCluster(t)
	c.bringTool()
	c.namespace("lab")
	c.apply(rendered(t, "kustomize", "../../../configs/kubernetes/components/jobs"), false)
	named := jobAsking(t, "named", map[string]string{"carma.dev/model": "resnet50", "carma.dev/batch-size": "64"}, "out:job-named", "block:0")
	c.until("the policy gates Jobs that name a model", func() bool {
		_, answer := c.send(http.MethodPost, labJobs+"?dryRun=All", "application/json", []byte(named))
		return strings.Contains(string(answer), "carma.dev/start")
	})
	agent, d := c.newAgent("lab", "dgx-station-a100"), c.newDaemon("lab")
	if !agent.start(offers) || !d.start(ready) {
		t.Fatal("agent and daemon do not start")
	}
	d.healthy()

	c.must(http.MethodPost, labJobs, named)
	task := d.runs("lab/named")
	if e := task.Estimate; e.Memory <= 0 || e.Method == "declared" || task.Attempts[0].Grant != e.Memory {
		t.Errorf("the estimate %+v, the attempt %+v", e, task.Attempts)
	}
	if bytes, _ := c.claimed("named"); bytes != task.Attempts[0].Grant {
		t.Errorf("its claim has %d bytes, the grant is %d", bytes, task.Attempts[0].Grant)
	}

	c.must(http.MethodPost, labJobs, jobAsking(t, "pair", map[string]string{"carma.dev/memory": "10Gi", "carma.dev/gpus": "2"},
		"env:NVIDIA_VISIBLE_DEVICES", "out:job-pair", "block:0"))
	pair := d.runs("lab/pair")
	gpus := pair.Attempts[0].GPUs
	if len(gpus) != 2 || gpus[0].UUID == gpus[1].UUID {
		t.Fatalf("its GPUs are %+v", gpus)
	}
	claim, _ := get[resourcev1.ResourceClaim](c, "/apis/resource.k8s.io/v1/namespaces/lab/resourceclaims/carma-job-pair")
	devices := map[string]bool{}
	if a := claim.Status.Allocation; a != nil {
		for _, r := range a.Devices.Results {
			devices[r.Device] = r.Pool == "localhost" && quantity(r.ConsumedCapacity["memory"]) == 10<<30
		}
	}
	if len(claim.Spec.Devices.Requests) != 2 || len(devices) != 2 || len(claim.Status.ReservedFor) != 1 {
		t.Errorf("the claim asks for %+v and has %+v", claim.Spec.Devices.Requests, claim.Status)
	}
	for device, right := range devices {
		if !right {
			t.Errorf("%s is not of the node with 10 GiB: %+v", device, claim.Status.Allocation)
		}
	}
	c.until("its program is told of both", func() bool {
		return c.printed("NVIDIA_VISIBLE_DEVICES=" + gpus[0].UUID + "," + gpus[1].UUID)
	})

	c.must(http.MethodPost, labJobs, jobAsking(t, "many", map[string]string{"carma.dev/memory": "10Gi", "carma.dev/gpus": "5"}, "exit:0"))
	c.until("the owner of the Job with 5 GPUs is told", func() bool { return strings.HasPrefix(c.refusal("many"), "annotation carma.dev/gpus: 5 ") })
	t.Log(c.refusal("many"))

	for _, job := range []string{"named", "pair"} {
		c.finish("job-" + job)
		d.ends("lab/"+job, 1)
		c.complete(job)
	}
	if _, err := d.api.Task(t.Context(), "lab/many"); err == nil {
		t.Error("the Job that was refused is a task")
	}
	c.empty("lab")
}
