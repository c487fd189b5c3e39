package containerstest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"carma/containers"
)

// Start runs the container's script in a goroutine.
func (f *Fake) Start(ctx context.Context, id string) error {
	lost, err := f.call(ctx, OpStart)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := f.get("start", id)
	if err != nil {
		return err
	}
	if c.state != containers.StateCreated {
		return lost
	}
	spec := c.resolve()
	argv := slices.Concat(spec.Entrypoint, spec.Command)
	switch {
	case c.image.Programs != nil && (len(argv) == 0 || !slices.Contains(c.image.Programs, argv[0])):
		c.exit = containers.Exit{Code: 127, Error: fmt.Sprintf("exec %q: executable file not found", argv)}
	case !numericUser.MatchString(spec.User):
		c.exit = containers.Exit{Code: 126, Error: fmt.Sprintf("unable to find user %s", spec.User)}
	}
	if c.exit.Error != "" {
		c.change()
		return fmt.Errorf("start container %s: %w: %s", id, containers.ErrInvalid, c.exit.Error)
	}
	c.run(spec)
	return lost
}

// run starts the goroutine. The caller holds the engine's mutex.
func (c *fakeContainer) run(spec containers.Spec) {
	ctx, cancel := context.WithCancel(context.Background())
	c.stop = cancel
	c.state = containers.StateRunning
	c.exit = containers.Exit{Started: c.engine.now()}
	p := &Process{Spec: spec, Killed: c.killed, screen: c.screen}
	c.writers = [2]*lineWriter{{c: c, stream: containers.Stdout}, {c: c, stream: containers.Stderr}}
	p.Stdout = &shown{c.writers[0], c.screen, containers.Stdout}
	p.Stderr = &shown{c.writers[1], c.screen, containers.Stderr}
	c.change()
	c.engine.scripts.Go(func() {
		defer cancel()
		code := 0
		if c.image.Run != nil {
			code = c.image.Run(ctx, p)
		}
		c.engine.mu.Lock()
		defer c.engine.mu.Unlock()
		c.end(containers.Exit{Code: code})
	})
}

// end ends a container if it runs. The caller holds the engine's mutex.
func (c *fakeContainer) end(exit containers.Exit) bool {
	if c.state != containers.StateRunning {
		return false
	}
	for _, w := range c.writers {
		w.finish()
	}
	c.screen.end()
	exit.Started, exit.Finished = c.exit.Started, c.engine.now()
	c.exit, c.state = exit, containers.StateExited
	c.stop()
	close(c.killed)
	close(c.finished)
	c.change()
	return true
}

// change wakes all callers that wait for the container. The caller holds the engine's
// mutex.
func (c *fakeContainer) change() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// Signal ends the script's context.
func (f *Fake) Signal(ctx context.Context, id string) error {
	lost, err := f.call(ctx, OpSignal)
	if errors.Is(err, errIgnored) {
		return nil
	}
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.containers[id]; c != nil && c.state == containers.StateRunning {
		c.stop()
	}
	return lost
}

// Kill ends the container.
func (f *Fake) Kill(ctx context.Context, id string) error {
	lost, err := f.call(ctx, OpKill)
	if errors.Is(err, errIgnored) {
		return nil
	}
	if err != nil {
		return err
	}
	f.End(id, containers.Exit{Code: 137})
	return lost
}

// Remove kills and forgets the container.
func (f *Fake) Remove(ctx context.Context, id string) error {
	lost, err := f.call(ctx, OpRemove)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.containers[id]; c != nil {
		c.end(containers.Exit{Code: 137})
		c.removed = true
		f.leave(ctx, c)
		c.change()
		delete(f.containers, id)
		f.order = slices.DeleteFunc(f.order, func(s string) bool { return s == id })
	}
	return lost
}

// Wait blocks until the container has ended.
func (f *Fake) Wait(ctx context.Context, id string) (containers.Exit, error) {
	if _, err := f.call(ctx, OpWait); err != nil {
		return containers.Exit{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c, err := f.get("wait for", id)
	if err != nil {
		return containers.Exit{}, err
	}
	for c.state != containers.StateExited && c.exit.Error == "" {
		if c.removed {
			return containers.Exit{}, fmt.Errorf("wait for container %s: %w", id, containers.ErrNotFound)
		}
		if err := f.sleep(ctx, OpWait, c); err != nil {
			return containers.Exit{}, err
		}
	}
	if c.removed {
		return containers.Exit{}, fmt.Errorf("wait for container %s: %w", id, containers.ErrNotFound)
	}
	f.leave(ctx, c)
	return c.exit, nil
}

// sleep waits for a change of c. The caller holds the engine's mutex; sleep
// unlocks it meanwhile.
func (f *Fake) sleep(ctx context.Context, op Op, c *fakeContainer) error {
	changed, down := c.changed, f.down
	f.mu.Unlock()
	defer f.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-down:
		return unavailable(op)
	case <-ctx.Done():
		return fmt.Errorf("%s container %s: %w", op, c.id, ctx.Err())
	}
}
