package docker

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"carma/containers"
)

// Start runs the container unless it runs or has run. Docker itself would run an exited
// container again.
func (d *Driver) Start(ctx context.Context, id string) error {
	what := "start container " + short(id)
	defer d.lock(id)()

	c, cli, err := d.inspect(ctx, what, id)
	if err != nil {
		return err
	}
	switch state(c.State.Status) {
	case containers.StateExited:
		return nil
	case containers.StateCreated:
		if _, err := cli.ContainerStart(ctx, id, client.ContainerStartOptions{}); err != nil {
			return d.fail(ctx, cli, what, err)
		}
	}
	if err := d.parking.unpark(c); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// lock locks the start of a container for the caller until it calls unlock.
func (e *engine) lock(id string) (unlock func()) {
	mu, _ := e.starting.LoadOrStore(id, new(sync.Mutex))
	mu.(*sync.Mutex).Lock()
	return mu.(*sync.Mutex).Unlock
}

// Signal sends the container's stop signal.
func (d *Driver) Signal(ctx context.Context, id string) error {
	what := "stop container " + short(id)
	c, cli, err := d.inspect(ctx, what, id)
	if errors.Is(err, containers.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	signal := "SIGTERM"
	if c.Config != nil && c.Config.StopSignal != "" {
		signal = c.Config.StopSignal
	}
	return d.kill(ctx, cli, what, id, signal)
}

// Kill ends the container by force.
func (d *Driver) Kill(ctx context.Context, id string) error {
	what := "kill container " + short(id)
	cli, err := d.client(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return d.kill(ctx, cli, what, id, "SIGKILL")
}

// kill sends a signal. Docker's answer "conflict" means that the container does not run,
// which is not an error.
func (d *Driver) kill(ctx context.Context, cli *client.Client, what, id, signal string) error {
	_, err := cli.ContainerKill(ctx, id, client.ContainerKillOptions{Signal: signal})
	if errdefs.IsNotFound(err) || errdefs.IsConflict(err) {
		return nil
	}
	return d.fail(ctx, cli, what, err)
}

// Remove deletes the container, by force.
func (d *Driver) Remove(ctx context.Context, id string) error {
	what := "remove container " + short(id)
	cli, err := d.client(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	dir := d.parking.parkDirOf(ctx, cli, id)
	_, err = cli.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	if errdefs.IsConflict(err) { // another Remove is in progress
		err = d.await(ctx, cli, id, container.WaitConditionRemoved)
	}
	if err == nil || errdefs.IsNotFound(err) {
		d.starting.Delete(id)
		if err := d.parking.forgetParked(dir); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	}
	return d.fail(ctx, cli, what, err)
}

// List returns the containers with all the labels, in the engine's order:
// newest first.
func (d *Driver) List(ctx context.Context, labels map[string]string) ([]containers.Container, error) {
	cli, err := d.client(ctx)
	if err != nil {
		return nil, fmt.Errorf("list containers: %w", err)
	}
	filters := make(client.Filters)
	for k, v := range labels {
		filters.Add("label", k+"="+v)
	}
	res, err := cli.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: filters})
	if err != nil {
		return nil, d.fail(ctx, cli, "list containers", err)
	}
	out := make([]containers.Container, 0, len(res.Items))
	for _, item := range res.Items {
		c := containers.Container{ID: item.ID, State: state(item.State), Paused: item.State == container.StatePaused, Labels: item.Labels}
		if len(item.Names) > 0 {
			c.Name = strings.TrimPrefix(item.Names[0], "/")
		}
		out = append(out, c)
	}
	return out, nil
}

// inspect returns a container with its State set.
func (e *engine) inspect(ctx context.Context, what, id string) (container.InspectResponse, *client.Client, error) {
	cli, err := e.client(ctx)
	if err != nil {
		return container.InspectResponse{}, nil, fmt.Errorf("%s: %w", what, err)
	}
	res, err := cli.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
	if err != nil {
		return container.InspectResponse{}, nil, e.fail(ctx, cli, what, err)
	}
	if res.Container.State == nil {
		return container.InspectResponse{}, nil, fmt.Errorf("%s: the engine gave no state", what)
	}
	return res.Container, cli, nil
}

func state(s container.ContainerState) containers.State {
	switch s {
	case container.StateCreated:
		return containers.StateCreated
	case container.StateRunning, container.StatePaused, container.StateRestarting:
		return containers.StateRunning
	}
	return containers.StateExited // exited, dead, removing
}
