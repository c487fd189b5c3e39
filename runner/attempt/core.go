package attempt

import (
	"context"
	"slices"
	"sync"

	"carma/containers"
	"carma/containers/bare"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/gpu"
	"carma/runner/label"
	"carma/runner/limiter"
	"carma/runner/record"
	"carma/runner/sharing"
)

// core has the data that the parts of an attempt share.
type core struct {
	deps    *Deps
	rec     *record.Record
	launch  model.Launch
	resumed bool // a restarted daemon continues the attempt
	stop    *stopper
	memory  *limiter.Attempt // limits its GPU memory
	// mps is the attempt as a client of MPS. It is nil for one that must be no client.
	mps *sharing.Attempt
	// adopted is the container that an earlier daemon created, or nil if this daemon creates
	// it. It is written before the container is known to anybody else.
	adopted *containers.Container

	mu    sync.Mutex
	moved []model.Grant // grants after a resume on other GPUs, or nil before one
}

func newCore(deps *Deps, rec *record.Record, launch model.Launch) *core {
	c := &core{deps: deps, rec: rec, launch: launch, stop: newStopper()}
	c.memory = deps.Limiter.Attempt(rec, launch, c.grants)
	return c
}

// uuids returns the UUIDs of the attempt's GPUs.
func (c *core) uuids() []string {
	grants := c.grants()
	uuids := make([]string, len(grants))
	for i, g := range grants {
		uuids[i] = string(g.GPU)
	}
	return uuids
}

// mostGranted returns the largest of the attempt's grants.
func (c *core) mostGranted() (most units.Bytes) {
	for _, g := range c.launch.Grants {
		most = max(most, g.Memory)
	}
	return most
}

// containerName returns the name of the attempt's container.
func (c *core) containerName() string {
	return label.ContainerName(c.deps.Instance, c.launch.Task, c.launch.Attempt)
}

// identity returns the labels that identify the attempt's container.
func (c *core) identity() map[string]string {
	return label.Identity(c.deps.Instance, c.launch.Task, c.launch.Attempt, c.rec.Nonce)
}

// attachment returns how the attempt's container gets its GPUs, or "" if it has none. A
// container with the machine's own folders gets the device nodes and no libraries. It has
// the machine's libraries, and nothing can be injected into read-only folders. So the
// machine needs no NVIDIA software beside the driver. If the nodes are not known (MIG),
// it gets its GPUs like any other container.
func (c *core) attachment() (mode containers.Attach, nodes []string, err error) {
	if len(c.launch.Grants) == 0 {
		return "", nil, nil
	}
	if c.rec.Submit.Bare() && c.deps.Attach != containers.AttachSimulated {
		if nodes = containers.NodesOf(c.uuids()); nodes != nil {
			return containers.AttachNodes, append(nodes, bare.Nodes()...), nil
		}
	}
	mode, _, err = c.deps.Attachment.Mode()
	return mode, nil, err
}

// grants returns the current grants of the attempt.
func (c *core) grants() []model.Grant {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.moved != nil {
		return c.moved
	}
	return c.launch.Grants
}

// goesTo records the grants on which the attempt resumes, and returns the previous ones.
func (c *core) goesTo(grants []model.Grant) (before []model.Grant) {
	before = c.grants()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.moved = slices.Clone(grants)
	return before
}

// booked returns the task's current request, and the host resources allocated to the
// attempt.
func (c *core) booked() (api.Submit, model.HostShare) {
	rec, _ := c.deps.Records.Get(c.launch.Task)
	if rec == nil {
		return c.rec.Submit, c.launch.Host
	}
	if a := rec.Task.Last(); a != nil && a.N == c.launch.Attempt {
		return rec.Submit, a.Host
	}
	return c.rec.Submit, c.launch.Host
}

// kill ends a container that must not run, and returns when it has ended.
func (c *core) kill(ctx context.Context, id string) error {
	if err := c.deps.Engine.Insist(ctx, func() error { return c.deps.Driver.Kill(ctx, id) }); err != nil {
		return err
	}
	_, err := c.deps.Engine.Retry(ctx, func() error { _, err := c.deps.Driver.Wait(ctx, id); return err })
	return err
}

func (c *core) stopRequested() bool {
	select {
	case <-c.stop.asked:
		return true
	default:
		return false
	}
}

func (c *core) key() gpu.AttemptKey {
	return gpu.AttemptKey{Task: c.launch.Task, Attempt: c.launch.Attempt}
}
