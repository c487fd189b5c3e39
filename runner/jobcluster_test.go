package runner

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"carma/containers"
	"carma/containers/containerstest"
	"carma/runner/api"
)

// jobCluster is a fake engine with Jobs, limited to the parts of a cluster that the daemon
// uses.
type jobCluster struct {
	*containerstest.Fake
	mu   sync.Mutex
	jobs map[string]*containers.Job // by uid
	told []string
	news chan struct{}
	// refuses is the error for requests to suspend a Job, or nil.
	refuses error
	looks   int
}

func (c *jobCluster) Jobs(context.Context) ([]containers.Job, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looks++
	var out []containers.Job
	for _, j := range c.jobs {
		out = append(out, *j)
	}
	return out, nil
}

func (c *jobCluster) JobNews() <-chan struct{} { return c.news }

func (c *jobCluster) SuspendJob(_ context.Context, id containers.JobID, mark string) error {
	if c.refuses != nil {
		return c.refuses
	}
	c.change(id.UID, func(j *containers.Job) { j.Suspended, j.Ended, j.Waits = true, mark, false })
	return nil
}

func (c *jobCluster) TellJob(_ context.Context, id containers.JobID, reason, text string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if line := id.Name + " " + reason + ": " + text; !slices.Contains(c.told, line) {
		c.told = append(c.told, line)
	}
	return nil
}

// Create uses the waiting pod.
func (c *jobCluster) Create(ctx context.Context, spec containers.Spec) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if spec.Job == nil {
		return c.Fake.Create(ctx, spec)
	}
	j := c.jobs[spec.Job.UID]
	if j == nil || !j.Waits {
		return "", containers.ErrNoPod
	}
	id, err := c.Fake.Create(ctx, spec)
	j.Waits = err != nil
	return id, err
}

// change edits a Job and reports that; the Job is gone if edit is nil.
func (c *jobCluster) change(uid string, edit func(*containers.Job)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if edit == nil {
		delete(c.jobs, uid)
	} else {
		edit(c.jobs[uid])
	}
	select {
	case c.news <- struct{}{}:
	default:
	}
}

// add makes a Job with a pod that waits.
func (c *jobCluster) add(name, image string, settings map[string]string) containers.JobID {
	id := containers.JobID{Namespace: "lab", Name: name, UID: "uid-" + name}
	c.mu.Lock()
	j := &containers.Job{JobID: id, Owner: "ada", Image: image, Memory: 8 << 30, Settings: settings, Waits: true}
	if settings["memory"] != "" || settings["model"] != "" {
		j.Memory = 0 // the value if the cluster cannot parse it
	}
	c.jobs[id.UID] = j
	c.mu.Unlock()
	c.change(id.UID, func(*containers.Job) {})
	return id
}

// until waits until the reports meet a condition.
func (c *jobCluster) until(t *testing.T, what string, so func() bool) {
	t.Helper()
	end := time.After(stepTimeout)
	for {
		c.mu.Lock()
		ok := so()
		c.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-end:
			t.Fatalf("%s; Jobs %+v, told %q", what, c.jobs, c.told)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// newJobRig returns a daemon on a cluster with Jobs.
func newJobRig(t *testing.T) (*rig, *jobCluster) {
	c := &jobCluster{jobs: map[string]*containers.Job{}, news: make(chan struct{}, 1)}
	g := newRig(t, func(g *rig) { c.Fake, g.driver = g.engine, c })
	g.script("waits:1", untilStopped)
	return g, c
}

// taken waits for the newest task of a Job.
func (g *rig) taken(name string, after int64) api.Task {
	g.t.Helper()
	end := time.After(stepTimeout)
	for {
		if rec := g.records.Find("lab/" + name); rec != nil && int64(rec.ID()) > after {
			t, err := g.api.Task(g.ctx(), rec.ID().String())
			if err != nil {
				g.t.Fatal(err)
			}
			return t
		}
		select {
		case <-end:
			g.t.Fatalf("Job %s is no task", name)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func ref(t api.Task) string { return "lab/" + strings.TrimPrefix(t.Name, "lab/") }
