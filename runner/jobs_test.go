package runner

import (
	"context"
	"slices"
	"strings"
	"testing"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/runner/api"
	"carma/runner/control"
	"carma/runner/label"
	"carma/runner/request"
	"carma/runner/verify"
)

// TestJobRunsAgain checks that a Job becomes a task of its owner, that the task waits for the
// Job's next pod after a GPU OOM, and that this pod gets more memory. The journal passes its
// check.
func TestJobRunsAgain(t *testing.T) {
	g, c := newJobRig(t)
	release := make(chan struct{})
	fails := true
	g.script("train:1", func(ctx context.Context, p *containerstest.Process) int {
		<-release
		if fails {
			fails = false
			return printing(1, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB")(ctx, p)
		}
		return 0
	})
	id := c.add("train", "train:1", map[string]string{"priority": "low"})
	task := g.taken("train", 0)
	if task.User != "ada" || task.Name != "lab/train" || task.Priority != "low" {
		t.Errorf("%+v", task)
	}
	g.running(ref(task))
	release <- struct{}{}
	held := g.until(ref(task), "held", func(t api.Task) bool { return t.Phase == "held" })
	if why, err := g.api.Why(g.ctx(), ref(task)); err != nil || !strings.Contains(why.Summary, control.NextPod) {
		t.Errorf("why: %+v, %v", why, err)
	}
	if len(held.Attempts) != 1 || held.Attempts[0].Outcome != "gpu-oom" {
		t.Errorf("attempts %+v", held.Attempts)
	}
	if _, err := g.control.Release(g.ctx(), request.Caller{}, ref(task)); err == nil || !strings.Contains(err.Error(), "next pod") {
		t.Errorf("release: %v", err)
	}
	c.change(id.UID, func(j *containers.Job) { j.Waits = true })
	g.running(ref(task))
	release <- struct{}{}
	done := g.finished(ref(task))
	if done.Phase != "succeeded" || len(done.Attempts) != 2 || done.Attempts[1].Grant <= done.Attempts[0].Grant {
		t.Errorf("%s, attempts %+v", done.Phase, done.Attempts)
	}
	c.mu.Lock()
	if j := c.jobs[id.UID]; j.Suspended || len(c.told) > 0 {
		t.Errorf("the Job of a task that has succeeded: %+v, %q", j, c.told)
	}
	c.mu.Unlock()
	// The Job may not count this success, because its pod was being deleted. Then the Job
	// continues.
	c.change(id.UID, func(j *containers.Job) { j.Waits = true })
	again := g.taken("train", task.ID)
	g.running(ref(again))
	release <- struct{}{}
	g.finished(ref(again))
	c.change(id.UID, func(j *containers.Job) { j.Done = true })
	g.stop()
	if v, err := verify.Journal(g.dir, "test"); err != nil || len(v.Faults) > 0 {
		t.Errorf("verify: %+v, %v", v, err)
	}
}

// TestJobEnds: the event that ends a Job ends its task, which shows the reason. A Job that
// continues is a new task.
func TestJobEnds(t *testing.T) {
	long(t)
	g, c := newJobRig(t)
	g.script("fails:1", printing(3, "Traceback"))
	for _, ends := range []struct {
		name, phase, reason string
		edit                func(*containers.Job)
	}{
		{"limit", "failed", "its Job has failed: BackoffLimitExceeded: it has failed too often", func(j *containers.Job) {
			j.Failed = "BackoffLimitExceeded: it has failed too often"
		}},
		{"suspended", "cancelled", "its Job was suspended", func(j *containers.Job) { j.Suspended = true }},
		{"deleted", "cancelled", "its Job was deleted", nil},
	} {
		id := c.add(ends.name, "fails:1", nil)
		task := g.taken(ends.name, 0)
		held := g.until(ref(task), "held", func(t api.Task) bool { return t.Phase == "held" })
		if held.Attempts[0].Outcome != "program" || held.Attempts[0].ExitCode != 3 {
			t.Errorf("%s: %+v", ends.name, held.Attempts[0])
		}
		c.change(id.UID, ends.edit)
		done := g.finished(ref(task))
		if string(done.Phase) != ends.phase || done.Reason != ends.reason {
			t.Errorf("%s: %s, %q", ends.name, done.Phase, done.Reason)
		}
		if ends.name == "suspended" {
			c.change(id.UID, func(j *containers.Job) { j.Suspended, j.Waits = false, true })
			again := g.taken(ends.name, task.ID)
			g.until(ref(again), "held", func(t api.Task) bool { return t.Phase == "held" })
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.told) > 0 {
		t.Errorf("told %q", c.told)
	}
}

// TestJobStopped: if a task ends before its Job, the Job is suspended, once; a resumed Job
// gets a new task.
func TestJobStopped(t *testing.T) {
	g, c := newJobRig(t)
	id := c.add("stop", "waits:1", nil)
	task := g.taken("stop", 0)
	g.running(ref(task))
	if _, err := g.api.Stop(g.ctx(), ref(task), api.StopRequest{}); err != nil {
		t.Fatal(err)
	}
	if done := g.finished(ref(task)); done.Phase != "cancelled" {
		t.Errorf("%s: %s", done.Phase, done.Reason)
	}
	c.until(t, "the Job is not suspended", func() bool { return c.jobs[id.UID].Suspended && len(c.told) == 1 })
	if !strings.Contains(c.told[0], "CarmaSuspended: task 1 is cancelled: stopped by") {
		t.Errorf("told %q", c.told)
	}
	c.change(id.UID, func(j *containers.Job) { j.Suspended, j.Waits = false, true })
	again := g.taken("stop", task.ID)
	g.running(ref(again))

	// A Job whose task carma ends is suspended too.
	g.script("never:1", printing(127, `exec: "train": executable file not found`))
	id = c.add("never", "gone:1", nil)
	c.until(t, "the Job of an image that is not there", func() bool { return len(c.told) == 2 })
	_ = id
}

// TestJobRefused: a wrong annotation is reported once, with a correct example; the Job is
// not adopted until it is fixed.
func TestJobRefused(t *testing.T) {
	long(t)
	g, c := newJobRig(t)
	for name, wrong := range map[string]struct {
		settings map[string]string
		says     string
	}{
		"lots":  {map[string]string{"memory": "lots"}, `annotation carma.dev/memory: "lots" is not an amount of memory; write for example 20Gi`},
		"typo":  {map[string]string{"batchsize": "8"}, "did you mean carma.dev/batch-size?"},
		"model": {map[string]string{"model": "resnet5000"}, `annotation carma.dev/model: unknown est-model "resnet5000"; did you mean resnet50?`},
		"high":  {map[string]string{"priority": "urgent"}, `annotation carma.dev/priority: "urgent" is not one of low, normal, high`},
		"many":  {map[string]string{"gpus": "9"}, "annotation carma.dev/gpus: "},
	} {
		id := c.add(name, "waits:1", wrong.settings)
		c.until(t, name+" is not refused", func() bool {
			return slices.ContainsFunc(c.told, func(line string) bool {
				return strings.HasPrefix(line, name+" CarmaRefused: ") && strings.Contains(line, wrong.says) && !strings.Contains(line, "\n")
			})
		})
		c.change(id.UID, func(*containers.Job) {}) // checked again, without a new report
	}
	c.mu.Lock()
	n := len(c.told)
	c.mu.Unlock()
	c.change("uid-lots", func(j *containers.Job) { j.Memory, j.Settings = 8<<30, nil })
	g.running(ref(g.taken("lots", 0)))
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.told) != n || n != 5 {
		t.Errorf("told %q", c.told)
	}
}

// TestJobWithoutDaemon: the next daemon handles changes of Jobs while no daemon ran: a new
// Job, a task that had ended, a Job that failed. Nothing starts twice.
func TestJobWithoutDaemon(t *testing.T) {
	g, c := newJobRig(t)
	runs := c.add("runs", "waits:1", nil)
	task := g.taken("runs", 0)
	g.running(ref(task))
	c.add("stops", "waits:1", nil)
	stopped := g.taken("stops", 0)
	g.running(ref(stopped))
	c.mu.Lock()
	c.refuses = containers.ErrUnavailable
	c.mu.Unlock()
	if _, err := g.api.Stop(g.ctx(), ref(stopped), api.StopRequest{}); err != nil {
		t.Fatal(err)
	}
	g.finished(ref(stopped))
	g.stop()

	c.mu.Lock()
	c.refuses = nil
	c.mu.Unlock()
	c.add("new", "waits:1", nil)
	g.start()
	g.running(ref(g.taken("new", 0)))
	c.until(t, "the Job of the task that was stopped goes on", func() bool { return c.jobs["uid-stops"].Suspended })
	if again := g.running(ref(task)); len(again.Attempts) != 1 || again.ID != task.ID {
		t.Errorf("after the restart: %+v", again)
	}

	g.stop()
	c.change(runs.UID, func(j *containers.Job) { j.Failed = "DeadlineExceeded" })
	if all, err := g.engine.List(g.ctx(), map[string]string{label.Name: "lab/runs"}); err != nil || len(all) != 1 || g.engine.Kill(g.ctx(), all[0].ID) != nil {
		t.Fatalf("%+v, %v", all, err)
	}
	g.start()
	if done := g.finished(ref(task)); done.Phase != "failed" || done.Reason != "its Job has failed: DeadlineExceeded" || len(done.Attempts) != 1 {
		t.Errorf("%s: %q, %+v", done.Phase, done.Reason, done.Attempts)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.jobs["uid-stops"].Waits || len(c.told) != 1 {
		t.Errorf("told %q", c.told)
	}
}

// TestJobOwner: a Job's task belongs to the user of the cluster who made the Job, and is in its
// namespace; no other user owns it, not even root.
func TestJobOwner(t *testing.T) {
	g, c := newJobRig(t)
	c.add("owned", "waits:1", nil)
	g.running(ref(g.taken("owned", 0)))
	rec := g.records.Find("lab/owned")
	if !ownsTask(request.SubjectCaller(containers.Subject{Name: "ada"}, ""), rec) || ownsTask(request.SubjectCaller(containers.Subject{Name: "bob"}, ""), rec) || ownsTask(request.Caller{Name: "ada", UID: 1000}, rec) || ownsTask(request.Caller{Name: "root"}, rec) {
		t.Errorf("%s, %d", rec.User, rec.UID)
	}
	if got := g.authz.NamespaceOf(rec); got != "lab" {
		t.Errorf("it is in namespace %s", got)
	}
}
