package attempt

import (
	"context"
	"time"

	"carma/containers"
	"carma/runner/gpu"
)

// catchUpFor bounds the wait for samples from another machine. Its agent reports changes
// within a second. The watchdog stops a task that overuses memory after 3 s. It counts
// the memory of the ended attempt as needed until the end is reported.
const catchUpFor = 2 * time.Second

// catchUp gives the mapper the GPUs' samples from the time when an attempt ran out of GPU
// memory, before the attempt's end. These samples show which task took the memory and is
// charged. Samples of this machine are never late.
func (c *classifier) catchUp(ctx context.Context, exit containers.Exit) {
	source, late := c.deps.Source.(gpu.Lagging)
	if !late {
		return
	}
	ctx, enough := context.WithTimeout(ctx, catchUpFor)
	defer enough()
	source.CatchUp(ctx, c.uuids(), exit.Finished)
	ctx, enough = context.WithTimeout(context.WithoutCancel(ctx), catchUpFor)
	defer enough()
	c.deps.Monitor.WaitForSample(ctx)
}
