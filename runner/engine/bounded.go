package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"carma/containers"
)

// Time limits of single calls of an engine. They are long, because after a longer call the
// engine counts as not answering, and the call is repeated. The limit is [APILimit] if an API
// request waits for the call.
const (
	imageLimit    = 3 * time.Second
	CreateLimit   = 15 * time.Minute // includes the time in which containerd unpacks the image
	StartLimit    = 5 * time.Minute  // also limits parking a container
	KillLimit     = 30 * time.Second
	removeLimit   = 10 * time.Minute // includes the deletion of all files that the container has written
	listLimit     = time.Minute
	AttachedLimit = time.Minute
	pullLimit     = 6 * time.Hour
	// waitRound limits one wait for a container's end; then the engine is asked again.
	waitRound = time.Minute
	// APILimit is the time that an API answer waits for an engine.
	APILimit = 4 * time.Second
)

// Bounded gives every call of an engine's driver a time limit, except Logs, which ends
// with the attempt.
type Bounded struct{ containers.Driver }

// Unwrap returns the driver itself.
func (b Bounded) Unwrap() containers.Driver { return b.Driver }

// Within calls f with a time limit. If it passes, the error wraps
// ErrUnavailable.
func Within(ctx context.Context, limit time.Duration, what string, f func(context.Context) error) error {
	short, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := f(short)
	if err != nil && ctx.Err() == nil && short.Err() != nil {
		return fmt.Errorf("%s: %w: no answer within %s", what, containers.ErrUnavailable, limit)
	}
	return err
}

func (b Bounded) Image(ctx context.Context, ref string) (img containers.Image, err error) {
	err = Within(ctx, imageLimit, "look up image", func(ctx context.Context) error { img, err = b.Driver.Image(ctx, ref); return err })
	return img, err
}

func (b Bounded) Pull(ctx context.Context, ref string, by containers.Credential) error {
	return Within(ctx, pullLimit, "pull image", func(ctx context.Context) error { return b.Driver.Pull(ctx, ref, by) })
}

func (b Bounded) Create(ctx context.Context, spec containers.Spec) (id string, err error) {
	err = Within(ctx, CreateLimit, "create container", func(ctx context.Context) error { id, err = b.Driver.Create(ctx, spec); return err })
	return id, err
}

func (b Bounded) Start(ctx context.Context, id string) error {
	return Within(ctx, StartLimit, "start container", func(ctx context.Context) error { return b.Driver.Start(ctx, id) })
}

// Wait asks again every waitRound: because an engine may have lost the request.
func (b Bounded) Wait(ctx context.Context, id string) (exit containers.Exit, err error) {
	for {
		round, cancel := context.WithTimeout(ctx, waitRound)
		exit, err = b.Driver.Wait(round, id)
		over := round.Err() != nil && ctx.Err() == nil
		cancel()
		if err == nil || !over || errors.Is(err, containers.ErrNotFound) {
			return exit, err
		}
	}
}

func (b Bounded) Signal(ctx context.Context, id string) error {
	return Within(ctx, KillLimit, "stop container", func(ctx context.Context) error { return b.Driver.Signal(ctx, id) })
}

func (b Bounded) Kill(ctx context.Context, id string) error {
	return Within(ctx, KillLimit, "kill container", func(ctx context.Context) error { return b.Driver.Kill(ctx, id) })
}

func (b Bounded) Remove(ctx context.Context, id string) error {
	return Within(ctx, removeLimit, "remove container", func(ctx context.Context) error { return b.Driver.Remove(ctx, id) })
}

func (b Bounded) Attached(ctx context.Context, id string) (got containers.Attachment, err error) {
	err = Within(ctx, AttachedLimit, "look at container", func(ctx context.Context) error { got, err = b.Driver.Attached(ctx, id); return err })
	return got, err
}

func (b Bounded) List(ctx context.Context, labels map[string]string) (list []containers.Container, err error) {
	err = Within(ctx, listLimit, "list containers", func(ctx context.Context) error { list, err = b.Driver.List(ctx, labels); return err })
	return list, err
}

// As returns an engine's driver, or a driver that it wraps, as an interface that only
// some drivers have.
func As[T any](d containers.Driver) (T, bool) {
	for {
		if t, ok := d.(T); ok {
			return t, true
		}
		w, ok := d.(interface{ Unwrap() containers.Driver })
		if !ok {
			var none T
			return none, false
		}
		d = w.Unwrap()
	}
}

// WhileAnswering returns a context that also ends, with an error that wraps ErrUnavailable,
// when the engine stops answering. Call end when done.
func (e *Health) WhileAnswering(ctx context.Context) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Second):
			}
			err := Within(ctx, imageLimit, "ping", func(ctx context.Context) error { _, err := e.driver.Ping(ctx); return err })
			if errors.Is(err, containers.ErrUnavailable) {
				cancel(err)
				return
			}
		}
	}()
	return ctx, func() { cancel(nil); <-done }
}
