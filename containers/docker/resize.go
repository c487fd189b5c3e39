package docker

import (
	"context"
	"errors"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"carma/containers"
)

// SetMemory implements [containers.Resizer].
func (d *Driver) SetMemory(ctx context.Context, id string, bytes int64) error {
	what := "set the memory of container " + short(id)
	c, cli, err := d.inspect(ctx, what, id)
	if errors.Is(err, containers.ErrNotFound) || err == nil && state(c.State.Status) != containers.StateRunning {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = cli.ContainerUpdate(ctx, id, client.ContainerUpdateOptions{Resources: &container.Resources{Memory: bytes, MemorySwap: bytes}})
	if err != nil {
		return d.fail(ctx, cli, what, err)
	}
	return nil
}
