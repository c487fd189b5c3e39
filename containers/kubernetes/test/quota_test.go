//go:build kubernetes

package test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"carma/runner/api"
)

const bobsQuotas = "/api/v1/namespaces/bob/resourcequotas"

// quota limits namespace bob, and waits until the cluster has counted the existing objects.
func (c *cluster) quota(name, hard string) {
	c.t.Helper()
	c.must(http.MethodPost, bobsQuotas, fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"hard":%s}}`, name, hard))
	c.until("the cluster knows what is used of the quota", func() bool {
		q, ok := get[corev1.ResourceQuota](c, bobsQuotas+"/"+name)
		return ok && len(q.Status.Hard) > 0 && len(q.Status.Used) > 0
	})
}

// refusedThere checks that Pod Security, and a ResourceQuota below the task's request, end a
// task at once with a reason of one line.
func (c *cluster) refusedThere(t *testing.T, d *daemon, ann, bob *user) {
	ann.wants(125, `violates PodSecurity "restricted:latest"`, "run", "--name", "root", "--mem", "512M", "--pull", "never", tool, "exit:0")
	text := ann.wants(0, "name a user that is not root, such as --user 1000:1000", "history", "root")
	if strings.Contains(text, "leave out -v") {
		t.Errorf("%q", text)
	}
	c.quota("none", `{"pods":"0","limits.memory":"64Mi"}`)
	bob.wants(125, "its ResourceQuota none allows 64Mi of limits.memory in all, and the task wants 128Mi; ask for less with --host-mem", "run", "--name", "full", "--mem", "512M", "--host-mem", "128M", "--pull", "never", tool, "exit:0")
	bob.wants(0, "can never take it", "history", "full")
	c.must(http.MethodDelete, bobsQuotas+"/none", "")
	for u, name := range map[*user]string{ann: "root", bob: "full"} {
		if task := d.sees(name, "its end", func(t api.Task) bool { return t.Finished() }); task.Phase != "failed" || len(task.Attempts) != 1 {
			t.Errorf("%s has %s after %d attempts", name, task.Phase, len(task.Attempts))
		}
		u.wants(0, "", "rm", name)
	}
}

// fullThere checks that while bob's ResourceQuota for pods or claims is full, his next task
// waits and names the quota, and ann's task runs. When bob's first task has ended, the next
// starts, and its waiting does not count as a failure.
func (c *cluster) fullThere(t *testing.T, d *daemon, ann, bob *user) {
	for name, resource := range map[string]string{"pods": "pods", "claims": "count/resourceclaims.resource.k8s.io"} {
		c.quota(name, fmt.Sprintf(`{%q:"1"}`, resource))
		run := func(u *user, task string) {
			u.wants(0, "", "run", "-d", "--name", task, "--mem", "512M", "--user", "1000:1000", "--pull", "never", tool, "out:"+task, "block:0")
		}
		first, second, other := "first-"+name, "second-"+name, "anns-"+name
		run(bob, first)
		d.runs(first)
		run(bob, second)
		says := fmt.Sprintf("its ResourceQuota %s is full: 1 of 1 %s are used, and the task wants 1", name, resource)
		c.until(second+" waits for the quota", func() bool {
			text, code := bob.says("why", second)
			return code == 0 && strings.Contains(text, "namespace bob takes no more now: "+says)
		})
		run(ann, other)
		d.runs(other)
		if task := d.sees(second, "it waits", func(t api.Task) bool { return t.Phase == "queued" }); len(task.Attempts) > 1 || !strings.Contains(task.Reason, says) {
			t.Errorf("%s: %q, %+v", second, task.Reason, task.Attempts)
		}
		bob.wants(0, "", "stop", first)
		task := d.runs(second)
		for _, a := range task.Attempts[:len(task.Attempts)-1] {
			if !a.Blameless || a.Outcome != "infrastructure" {
				t.Errorf("%s: %+v", second, a)
			}
		}
		bob.wants(0, "", "stop", second)
		ann.wants(0, "", "stop", other)
		for task, u := range map[string]*user{first: bob, second: bob, other: ann} {
			d.sees(task, "its end", func(t api.Task) bool { return t.Finished() })
			u.wants(0, "", "rm", task)
		}
		c.empty("bob")
		c.empty("ann")
		c.must(http.MethodDelete, bobsQuotas+"/"+name, "")
	}
}
