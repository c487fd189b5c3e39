//go:build kubernetes

package test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"

	"carma/containers"
	"carma/containers/kubernetes"
	"carma/runner/gpu/cgroup"
	"carma/runner/suspend"
)

// freeze stops the threads of a task's container, like a suspension, and returns a function
// that lets them continue.
func (c *cluster) freeze(word string) (thaw func()) {
	c.t.Helper()
	pids := all(word)
	if len(pids) != 1 {
		c.t.Fatalf("%s has the processes %v, want one", word, pids)
	}
	names, err := cgroup.Containers("/", pids[0])
	if err != nil || len(names) == 0 {
		c.t.Fatalf("process %d is in the containers %v: %v", pids[0], names, err)
	}
	by, of := suspend.CgroupFreezer{}, suspend.Container{ID: names[0], PIDs: pids}
	if err := by.Freeze(c.t.Context(), of); err != nil {
		c.t.Fatal(err)
	}
	if is, err := by.Frozen(c.t.Context(), of); err != nil || !is {
		c.t.Fatalf("frozen: %v, %v", is, err)
	}
	return func() {
		c.t.Helper()
		if err := by.Thaw(c.t.Context(), of); err != nil {
			c.t.Error(err)
		}
	}
}

// booking returns the memory that a claim has allocated, and the number of its pods.
func (c *cluster) booking(path string) (bytes int64, pods int) {
	c.t.Helper()
	claim, ok := get[resourcev1.ResourceClaim](c, path)
	if !ok {
		c.t.Fatalf("there is no %s", path)
	}
	if a := claim.Status.Allocation; a != nil {
		bytes = quantity(a.Devices.Results[0].ConsumedCapacity["memory"])
	}
	return bytes, len(claim.Status.ReservedFor)
}

// TestFrozen shows why carma suspends nothing on a cluster. While a task's container is frozen,
// another claim for its GPU's memory is refused, because a claim keeps its bytes as long as its
// pod exists. The claim cannot request less, and its allocation cannot be reduced. If somebody
// removes the pod's name from the claim, the cluster restores it. The memory is free only if
// both the name and the allocation are deleted at once. Then no claim reserves the memory for
// the first pod any more, and both pods are on the GPU.
func TestFrozen(t *testing.T) {
	c, _, d := bench(t)
	first := block("first", "frozen-first")
	first.Mem = 30 << 30
	d.submit(first)
	gpu := d.runs("first").Attempts[0].GPUs[0].UUID
	c.namespace("other")
	other, err := kubernetes.New(kubernetes.Options{Kubeconfig: c.kubeconfig, Namespace: "other", StopGrace: time.Second, ClaimPatience: 5 * time.Second, NodePatience: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	start := func(name string) (id string, err error) {
		id, err = other.Create(t.Context(), containers.Spec{
			Name: name, Image: tool, Command: []string{"out:" + name, "block:0"}, Attach: containers.AttachClaim, GPUs: []string{gpu}, GPUMemory: 30 << 30,
			Identity: map[string]string{"task": name},
		})
		if err != nil {
			t.Fatal(err)
		}
		return id, other.Start(t.Context(), id)
	}
	pod := c.tasks("lab")[0].Name
	claim := "/apis/resource.k8s.io/v1/namespaces/lab/resourceclaims/" + pod
	thaw := c.freeze("out:frozen-first")

	id, err := start("frozen-second")
	if fault, ok := errors.AsType[*containers.StartFault](err); !ok || fault.Code != "gpu-taken" || !strings.Contains(err.Error(), "claim lab/"+pod+" has 30.0 GiB") {
		t.Errorf("beside a frozen task: %v, want gpu-taken", err)
	}
	if err := other.Remove(t.Context(), id); err != nil {
		t.Error(err)
	}
	for _, no := range []struct{ what, path, body, says string }{
		{"ask for less", claim, `{"spec":{"devices":{"requests":[{"name":"gpu-0","exactly":{"deviceClassName":"gpu.carma.dev","allocationMode":"ExactCount","count":1,
			"capacity":{"requests":{"memory":"1Gi"}}}}]}}}`, "field is immutable"},
		{"cut the allocation", claim + "/status", `{"status":{"allocation":{"devices":{"results":[{"request":"gpu-0","driver":"gpu.carma.dev","pool":"localhost","device":"gpu-0",
			"consumedCapacity":{"memory":"1Gi"}}]}}}}`, "field is immutable"},
		{"drop the allocation", claim + "/status", `{"status":{"allocation":null}}`, "reservedFor: Forbidden"},
	} {
		code, answer := c.send(http.MethodPatch, no.path, "application/merge-patch+json", []byte(no.body))
		if code != http.StatusUnprocessableEntity || !strings.Contains(string(answer), no.says) {
			t.Errorf("%s: %d %s, want %s", no.what, code, answer, no.says)
		}
	}
	c.must(http.MethodPatch, claim+"/status", `{"status":{"reservedFor":null}}`)
	c.until("the cluster reserves the claim for its pod again", func() bool {
		bytes, pods := c.booking(claim)
		return bytes == 30<<30 && pods == 1
	})

	// An administrator may delete it, but carma lacks the right.
	c.must(http.MethodPatch, claim+"/status", `{"status":{"allocation":null,"reservedFor":null}}`)
	id, err = start("frozen-third")
	if err != nil {
		t.Fatalf("with the books wiped out: %v", err)
	}
	thaw()
	c.until("both run", func() bool { return len(all("out:frozen-first")) == 1 && len(all("out:frozen-third")) == 1 })
	if bytes, pods := c.booking(claim); bytes != 0 || pods != 0 {
		t.Errorf("the first has %d bytes booked again, for %d pods", bytes, pods)
	}
	if err := other.Kill(t.Context(), id); err != nil {
		t.Error(err)
	}
	if err := other.Remove(t.Context(), id); err != nil {
		t.Error(err)
	}
	c.finish("frozen-first")
	d.ends("first", 1)
	c.empty("lab")
}
