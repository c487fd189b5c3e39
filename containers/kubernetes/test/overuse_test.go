//go:build kubernetes

package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carma/containers/containerstest"
	"carma/runner/api"
)

// simtask is the image of the program that uses simulated GPUs.
const simtask = "localhost/carma/simtask:1"

// bringSimtask loads that image onto the node.
func (c *cluster) bringSimtask() {
	c.t.Helper()
	bin := filepath.Join(c.t.TempDir(), "simtask")
	build := exec.Command("go", "build", "-trimpath", "-o", bin, "carma/cmd/simtask")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		c.t.Fatalf("build simtask: %v: %s", err, out)
	}
	program, err := os.ReadFile(bin)
	if err != nil {
		c.t.Fatal(err)
	}
	archive, err := containerstest.Archive(simtask, "/simtask", program, containerstest.ImageConfig{Entrypoint: []string{"/simtask"}})
	if err != nil {
		c.t.Fatal(err)
	}
	c.bringBytes(archive)
}

// overuser returns a task that requests 8 GiB, allocates 24 GiB, and then idles until it is
// stopped.
func overuser(name string) api.Submit {
	return api.Submit{Name: name, Image: simtask, Mem: 8 << 30, Pull: "never", Command: []string{"resnet50-imagenet-bs128", "--peak", "24G", "--hang"}}
}

// uses reports whether the daemon has seen this many bytes in use by the task's present
// attempt.
func uses(t api.Task, bytes int64) bool {
	if len(t.Attempts) == 0 {
		return false
	}
	curve := t.Attempts[len(t.Attempts)-1].Curve
	return slices.ContainsFunc(curve, func(p api.CurvePoint) bool { return p.Used >= bytes })
}

// sameGPU fails the test unless two tasks are on the same GPU.
func (c *cluster) sameGPU(a, b api.Task) {
	c.t.Helper()
	if of, other := a.Attempts[0].GPUs[0].UUID, b.Attempts[0].GPUs[0].UUID; of != other {
		c.t.Fatalf("%s is on %s, %s on %s", a.Name, of, b.Name, other)
	}
}

// untouched reports whether a task still runs in its first attempt, with the same
// allocation.
func (d *daemon) untouched(was api.Task) {
	d.t.Helper()
	if now := d.runs(was.Name); len(now.Attempts) != 1 || now.Attempts[0].Grant != was.Attempts[0].Grant {
		d.t.Errorf("the neighbour %s: %+v, before %+v", was.Name, now.Attempts, was.Attempts)
	}
}

// stop stops a task and waits for its end.
func (d *daemon) stop(name string) {
	d.t.Helper()
	if _, err := d.api.Stop(d.t.Context(), name, api.StopRequest{}); err != nil {
		d.t.Error(err)
	}
	d.sees(name, "its end", func(t api.Task) bool { return t.Finished() })
}

// claimOf returns the URL path of the claim of a task's last attempt.
func claimOf(t api.Task) string {
	return "/apis/resource.k8s.io/v1/namespaces/lab/resourceclaims/" + t.Attempts[len(t.Attempts)-1].Container
}

// TestOveruse: a task uses three times its claim, and the node's agent reports it. While its
// GPU has room, carma allocates the used memory to it and does not change its claim. When a
// neighbour's grant needs the memory, the task is stopped, loses an attempt, and runs again
// with a claim for the used memory. The neighbours continue in their first attempts, with the
// same allocation.
func TestOveruse(t *testing.T) {
	c, _, d := bench(t, "--idle-first=false")
	c.bringSimtask()
	d.submit(block("small", "overuse-small"))
	small := d.runs("small")
	d.submit(overuser("first"))
	first := d.sees("first", "it is booked with what it uses", func(t api.Task) bool { return uses(t, 24<<30) && t.Attempts[0].Grant >= 24<<30 })
	c.sameGPU(small, first)
	if bytes, pods := c.booking(claimOf(first)); bytes != 8<<30 || pods != 1 || len(first.Attempts) != 1 {
		t.Errorf("its claim has %d bytes for %d pods, in %d attempts", bytes, pods, len(first.Attempts))
	}
	d.untouched(small)
	d.stop("first")

	large := block("large", "overuse-large")
	large.Mem = 24 << 30
	d.submit(large)
	neighbour := d.runs("large")
	d.submit(overuser("second"))
	second := d.sees("second", "it runs again", func(t api.Task) bool { return len(t.Attempts) > 1 && t.Phase == "running" })
	c.sameGPU(neighbour, second)
	if a := second.Attempts; a[0].Outcome != "stopped" || a[0].Blameless || !strings.Contains(a[0].Reason, "and others need the room") || a[0].Peak < 24<<30 || a[1].Grant < a[0].Peak {
		t.Errorf("the overuser: %+v", a)
	}
	if bytes, pods := c.booking(claimOf(second)); bytes != second.Attempts[1].Grant || pods != 1 {
		t.Errorf("its next claim has %d bytes for %d pods, the grant is %d", bytes, pods, second.Attempts[1].Grant)
	}
	d.untouched(small)
	d.untouched(neighbour)
	d.stop("second")
	for _, name := range []string{"small", "large"} {
		c.finish("overuse-" + name)
		d.ends(name, 1)
	}
	c.empty("lab")
}

// TestVictim: a task runs out of memory although its allocation is large enough, because a
// neighbour uses more than its claim. The daemon learns that from the agent's report. The
// victim is not at fault and runs again with the same grant. When the neighbour is requeued,
// its claim has the memory that it uses.
func TestVictim(t *testing.T) {
	c, _, d := bench(t, "--idle-first=false", "--watchdog", "warn")
	c.bringSimtask()
	victim := block("victim", "victim-begins")
	victim.Mem = 24 << 30
	victim.Command = []string{"out:victim-begins", "await", "out:torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "exit:1"}
	d.submit(victim)
	before := d.runs("victim")
	d.submit(overuser("over"))
	over := d.sees("over", "it uses three times its claim", func(t api.Task) bool { return uses(t, 24<<30) })
	c.sameGPU(before, over)
	c.finish("victim-begins")
	again := d.sees("victim", "it runs again", func(t api.Task) bool { return len(t.Attempts) == 2 && t.Phase == "running" })
	if a := again.Attempts; a[0].Outcome != "gpu-oom" || !a[0].Blameless || a[1].Grant != a[0].Grant {
		t.Errorf("the victim: %+v", a)
	}
	if _, err := d.api.Requeue(t.Context(), "over", api.RequeueRequest{}); err != nil {
		t.Fatal(err)
	}
	over = d.sees("over", "it runs again", func(t api.Task) bool { return len(t.Attempts) == 2 && t.Phase == "running" })
	if bytes, pods := c.booking(claimOf(over)); bytes < 24<<30 || bytes != over.Attempts[1].Grant || pods != 1 {
		t.Errorf("the overuser's next claim has %d bytes for %d pods: %+v", bytes, pods, over.Attempts)
	}
	d.stop("over")
	d.stop("victim")
	c.empty("lab")
}
