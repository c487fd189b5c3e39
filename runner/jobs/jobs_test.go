package jobs

import (
	"context"
	"slices"
	"strings"
	"testing"

	"carma/containers"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/loop/looptest"
	"carma/runner/record"
	"carma/runner/request"

	"github.com/rs/zerolog"
)

// cluster has Jobs and records what is done to them.
type cluster struct {
	jobs []containers.Job
	done []string
}

func (c *cluster) Jobs(context.Context) ([]containers.Job, error) { return c.jobs, nil }
func (c *cluster) JobNews() <-chan struct{}                       { return nil }
func (c *cluster) SuspendJob(_ context.Context, id containers.JobID, _ string) error {
	c.done = append(c.done, "suspend "+id.Name)
	return nil
}
func (c *cluster) TellJob(_ context.Context, id containers.JobID, reason, text string) error {
	c.done = append(c.done, reason+" "+id.Name+": "+text)
	return nil
}

// TestReconcile: a Job that waits for a GPU becomes a task once. A wrong annotation is refused,
// and its owner gets one message. The Job of a task that has ended is suspended. A task whose
// Job is gone ends.
func TestReconcile(t *testing.T) {
	l := looptest.New(t)
	job := func(name string) containers.Job {
		return containers.Job{JobID: containers.JobID{Namespace: "lab", Name: name, UID: "uid-" + name}, Owner: "ada", Image: "train:1", Waits: true}
	}
	c := &cluster{jobs: []containers.Job{job("new"), job("wrong"), job("over")}}
	c.jobs[0].Settings = map[string]string{"model": "resnet50", "priority": "low"}
	c.jobs[1].Settings = map[string]string{"priorty": "low"}
	over, gone := c.jobs[2].JobID, job("gone").JobID
	l.Records.Put(&record.Record{Name: "lab/over", Nonce: "n1", Job: &record.Job{JobID: over}, Task: model.Task{Request: model.Request{ID: 1}, Phase: model.Failed}})
	l.Submit(&record.Record{Name: "lab/gone", Job: &record.Job{JobID: gone}, Task: model.Task{Request: model.Request{ID: 2}}})
	var submitted []api.Submit
	r := New(Config{Cluster: c, Loop: l.Loop, Records: l.Records, Log: zerolog.Nop(),
		Submit: func(_ context.Context, who request.Caller, s api.Submit, id containers.JobID) (*record.Record, []string, error) {
			if who.Name != "ada" || who.Subject == nil {
				t.Errorf("the owner is %+v", who)
			}
			submitted = append(submitted, s)
			rec := &record.Record{Nonce: "n3", Job: &record.Job{JobID: id}, Task: model.Task{Request: model.Request{ID: 3}, Phase: model.Queued}}
			l.Records.Put(rec)
			return rec, []string{"its memory is a guess"}, nil
		},
	})
	defer l.Run()()
	r.reconcileAll(t.Context())
	r.reconcileAll(t.Context())
	if len(submitted) != 1 || submitted[0].EstModel != "resnet50" || submitted[0].Priority != "low" || submitted[0].Namespace != "lab" {
		t.Errorf("%d submitted", len(submitted))
	}
	count := func(part string) (n int) {
		for _, text := range c.done {
			if strings.Contains(text, part) {
				n++
			}
		}
		return n
	}
	if count("CarmaSubmitted new: its memory is a guess") != 1 || count("CarmaRefused wrong: annotation carma.dev/priorty: carma knows no such setting") != 1 || count("did you mean carma.dev/priority?") != 1 {
		t.Errorf("said: %q", c.done)
	}
	if !slices.Contains(c.done, "suspend over") || count("CarmaSuspended over: task 1 is failed") == 0 {
		t.Errorf("the Job of a task that has ended: %q", c.done)
	}
	if rec, _ := l.Records.Get(2); rec.Task.Phase != model.Cancelled || rec.Job.Over != "its Job was deleted" {
		t.Errorf("the task without its Job is %s, %q", rec.Task.Phase, rec.Job.Over)
	}
}

// TestInAnnotations: an error about a flag names the annotation that set it.
func TestInAnnotations(t *testing.T) {
	for text, want := range map[string]string{
		"--mem: too much":   "annotation carma.dev/memory: too much",
		"--gpus: 9 are not": "annotation carma.dev/gpus: 9 are not",
		"the disk is full":  "the disk is full",
	} {
		if got := inAnnotations(request.Errorf(422, "%s", text)).Error(); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
