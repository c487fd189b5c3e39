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
// The engine's own wait misses an exit in one of two ways: "not-running" is
// true of a container that has yet to start, "next-exit" never comes for one
// that has ended. So ask for the next exit first, then look: an end before
// the look is seen there, a later one by the wait.
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

// The engine hears of the end of a container and of its lack of memory on ways of
// their own. So one that was killed just now is looked at a few times more.
const (
	oomLooks = 10
	oomPause = 100 * time.Millisecond
)

// mayBeOOM reports whether a container has just been killed, and its engine may
// still hear that it was for lack of memory.
func mayBeOOM(c *container.InspectResponse) bool {
	return c.State.ExitCode == 137 && !c.State.OOMKilled && c.HostConfig != nil && c.HostConfig.Memory > 0 &&
		time.Since(instant(c.State.FinishedAt)) < oomLooks*oomPause
}

// await returns when the condition holds or, for the next exit, when the
// container has ended already. Its error is the client's.
func (d *Driver) await(ctx context.Context, cli *client.Client, id string, cond container.WaitCondition) error {
	ctx, cancel := context.WithCancel(ctx)
	wait := cli.ContainerWait(ctx, id, client.ContainerWaitOptions{Condition: cond})
	// From here on the engine watches. Whatever the client's goroutine gets
	// must be taken from it, or it stays for ever.
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

// ended reports whether a container will not run (again). One whose start
// failed stays in state "created", with the reason.
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
	// The start is stamped when the engine hears of it, the end when it
	// happens: of a short life the end may come first.
	if !e.Finished.IsZero() && e.Started.After(e.Finished) {
		e.Started = e.Finished
	}
	return e
}

// instant reads the engine's time; its year 1 is the zero time.
func instant(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil || t.Year() <= 1 {
		return time.Time{}
	}
	return t.UTC()
}
