package docker

import (
	"context"
	"errors"
	"math"
	"runtime"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"carma/containers"
)

// SetMemory implements [containers.Resizer].
func (d *Driver) SetMemory(ctx context.Context, id string, bytes int64) error {
	return d.resize(ctx, "set the memory of container "+short(id), id, container.Resources{Memory: bytes, MemorySwap: bytes})
}

// SetCPUs implements [containers.Resizer]. The engine takes 0 as no change, so no limit
// is passed as the number of the machine's processors.
func (d *Driver) SetCPUs(ctx context.Context, id string, cpus float64, weight int64) error {
	if cpus == 0 {
		cpus = float64(runtime.NumCPU())
	}
	spec := containers.Spec{CPUWeight: weight}
	return d.resize(ctx, "set the processors of container "+short(id), id, container.Resources{NanoCPUs: nano(cpus), CPUShares: spec.CPUShares()})
}

func (d *Driver) resize(ctx context.Context, what, id string, to container.Resources) error {
	c, cli, err := d.inspect(ctx, what, id)
	if errors.Is(err, containers.ErrNotFound) || err == nil && state(c.State.Status) != containers.StateRunning {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err = cli.ContainerUpdate(ctx, id, client.ContainerUpdateOptions{Resources: &to}); err != nil {
		return d.fail(ctx, cli, what, err)
	}
	return nil
}

// nano converts a number of processors to billionths.
func nano(cpus float64) int64 { return int64(math.Round(cpus * 1e9)) }
