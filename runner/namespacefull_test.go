package runner

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/runner/api"
)

// fill makes a namespace refuse new pods with an error, or accept them if err is nil.
func (p *parted) fill(namespace string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.full = map[string]error{namespace: err}
}

// TestNamespaceFull: a task waits if its namespace has no room for it, and names the quota;
// it has no GPU meanwhile, and no attempt of its own. It starts when another task there has
// ended.
func TestNamespaceFull(t *testing.T) {
	g := newRemoteRig(t)
	g.script("train", untilStopped)
	first := g.submit("ann", api.Submit{Image: "train", Namespace: "a"})
	g.running(first)
	cause := "its ResourceQuota few is full: 1 of 1 pods are used, and the task wants 1"
	g.engine.fill("a", fmt.Errorf("create pod: %w", &containers.StartFault{Scope: containers.ScopeNamespace, Code: "quota", Cause: cause, Remedy: "it starts when there is room", Text: cause}))
	second := g.submit("ann", api.Submit{Image: "train", Namespace: "a"})
	g.eventually("why names the quota", func() bool {
		why := g.why(second)
		return strings.Contains(why.Summary, "namespace a takes no more now: "+cause+"; it starts when there is room; tried again in ")
	})
	waiting := g.until(second, "it waits", func(t api.Task) bool { return t.Phase == "queued" && !t.Finished() })
	if n := len(waiting.Attempts); n > 1 {
		t.Errorf("%d attempts: %+v", n, waiting.Attempts)
	}
	other := g.submit("bob", api.Submit{Image: "train", Namespace: "b", Exclusive: true}) // nothing of it is allocated
	g.running(other)
	if text := texts(g.historyOf(second)); !strings.Contains(text, cause) || strings.Contains(text, "sick") {
		t.Errorf("history: %s", text)
	}
	g.engine.fill("a", nil)
	if _, err := g.api.Stop(g.ctx(), first, api.StopRequest{}); err != nil {
		t.Fatal(err)
	}
	task := g.running(second)
	if last := task.Attempts[len(task.Attempts)-1]; len(task.Attempts) != 2 || !slices.ContainsFunc(task.Attempts[:1], func(a api.Attempt) bool { return a.Outcome == "infrastructure" && a.Blameless }) || last.Started.IsZero() {
		t.Errorf("%+v", task.Attempts)
	}
	for _, id := range []string{second, other} {
		if _, err := g.api.Stop(g.ctx(), id, api.StopRequest{}); err != nil {
			t.Fatal(err)
		}
		g.finished(id)
	}
}

// TestJobOfAFullNamespace: the pod of a Job keeps waiting when its claim finds no room. The
// task is not held for another pod, and uses this one when there is room.
func TestJobOfAFullNamespace(t *testing.T) {
	g, c := newJobRig(t)
	c.FailAll(containerstest.OpCreate, &containers.StartFault{Scope: containers.ScopeNamespace, Code: "quota", Cause: "its ResourceQuota few is full", Text: "full"})
	id := c.add("train", "waits:1", nil)
	task := g.taken("train", 0)
	waits := g.until(ref(task), "it was refused", func(t api.Task) bool { return len(t.Attempts) == 1 && !t.Attempts[0].Ended.IsZero() })
	if waits.Phase == "held" || waits.Finished() {
		t.Errorf("it has %s: %s", waits.Phase, waits.Reason)
	}
	c.FailAll(containerstest.OpCreate, nil)
	if task := g.running(ref(task)); len(task.Attempts) != 2 {
		t.Errorf("%+v", task.Attempts)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if j := c.jobs[id.UID]; j.Suspended || len(c.told) > 0 {
		t.Errorf("its Job: %+v, %q", j, c.told)
	}
}
