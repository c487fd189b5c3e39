package docker

import (
	"context"
	"fmt"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"carma/containers"
)

// Wait blocks until the container has ended.
//
// The engine's own wait alone can miss an exit. "not-running" is also true for a
// container that is not started yet. "next-exit" never comes for a container that has
// ended. So Wait first waits for the next exit, then inspects the container: the
// inspection shows an earlier end, the wait a later one.
func (d *Driver) Wait(ctx context.Context, id string) (containers.Exit, error) {
	what, looks := "wait for container "+short(id), 0
	for {
		c, cli, err := d.inspect(ctx, what, id)
		if err != nil {
			return containers.Exit{}, err
		}
		if c.State.Status == container.StateRemoving || c.State.Status == container.StateDead {
			return containers.Exit{}, fmt.Errorf("%s: %w: it is being removed", what, containers.ErrNotFound)
		}
		if ended(c.State) && mayBeOOM(&c) && looks < oomLooks {
			looks++
			select {
			case <-ctx.Done():
				return containers.Exit{}, fmt.Errorf("%s: %w", what, ctx.Err())
			case <-time.After(oomPause):
			}
			continue
		}
		if ended(c.State) {
			return exit(c.State), nil
		}
		err = d.await(ctx, cli, id, container.WaitConditionNextExit)
		if err != nil {
			return containers.Exit{}, d.fail(ctx, cli, what, err)
		}
	}
}

// The engine receives a container's end and its out-of-memory kill separately. So Wait
// inspects a container that was just killed a few more times.
const (
	oomLooks = 10
	oomPause = 100 * time.Millisecond
)

// mayBeOOM reports whether a container has just been killed and the engine may still
// learn that the kernel killed it for lack of memory.
func mayBeOOM(c *container.InspectResponse) bool {
	return c.State.ExitCode == 137 && !c.State.OOMKilled && c.HostConfig != nil && c.HostConfig.Memory > 0 &&
		time.Since(instant(c.State.FinishedAt)) < oomLooks*oomPause
}

// await waits until the condition holds. For the next exit, it also returns if the
// container has already ended. The error is the client's.
func (d *Driver) await(ctx context.Context, cli *client.Client, id string, cond container.WaitCondition) error {
	ctx, cancel := context.WithCancel(ctx)
	wait := cli.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: cond})
	// From here on the engine watches. The result must always be received, or the client's
	// goroutine never ends.
	received := false
	defer func() {
		cancel()
		if !received {
			select {
			case <-wait.Result:
			case <-wait.Error:
			}
		}
	}()
	if cond == container.WaitConditionNextExit {
		res, err := cli.ContainerInspect(ctx, id, client.ContainerInspectOptions{})
		if err != nil {
			return err
		}
		if res.Container.State != nil && ended(res.Container.State) {
			return nil
		}
	}
	select {
	case <-wait.Result:
		received = true
		return nil
	case err := <-wait.Error:
		received = true
		return err
	}
}

// ended reports whether a container will not run (again). A container whose start failed
// remains "created", with an error.
func ended(s *container.State) bool {
	switch state(s.Status) {
	case containers.StateExited:
		return true
	case containers.StateCreated:
		return s.Error != ""
	}
	return false
}

func exit(s *container.State) containers.Exit {
	e := containers.Exit{
		Code:      s.ExitCode,
		OOMKilled: s.OOMKilled,
		Error:     containers.CleanMessage(s.Error),
		Started:   instant(s.StartedAt),
		Finished:  instant(s.FinishedAt),
	}
	// The engine stamps the start when it receives it, and the end when it happens. So a
	// short-lived container may seem to end before its start.
	if !e.Finished.IsZero() && e.Started.After(e.Finished) {
		e.Started = e.Finished
	}
	return e
}

// instant parses the engine's time. The engine writes the year 1 for the zero time.
func instant(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil || t.Year() <= 1 {
		return time.Time{}
	}
	return t.UTC()
}
