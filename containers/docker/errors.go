package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"carma/containers"
	"carma/internal/lazyregexp"
)

// fail turns an error of the client into an error of the [containers.Driver] contract.
// what is the call that failed. The order of the checks matters: the caller's own
// context, then the connection, then faults of the machine, then faults of the submitter.
// An engine answers "bad request" to both kinds of fault.
func (e *engine) fail(ctx context.Context, cli *client.Client, what string, err error) error {
	if err == nil {
		return nil
	}
	msg := containers.CleanMessage(err.Error())
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", what, ctx.Err())
	case versionRefused().MatchString(msg):
		e.renew(cli)
		return fmt.Errorf("%s: %w: %s", what, containers.ErrUnavailable, msg)
	case unreachable(err) || engineBroken().MatchString(msg):
		return fmt.Errorf("%s: %w: %s", what, containers.ErrUnavailable, msg)
	case errdefs.IsNotFound(err) && !networkGone().MatchString(msg) || beingRemoved().MatchString(msg):
		return fmt.Errorf("%s: %w: %s", what, containers.ErrNotFound, msg)
	case containers.MachineFault(msg):
		return fmt.Errorf("%s: %w", what, containers.ReadStartFault(msg))
	case errdefs.IsInvalidArgument(err) || containers.SubmitterFault(msg):
		return fmt.Errorf("%s: %w: %s", what, containers.ErrInvalid, msg)
	}
	return fmt.Errorf("%s: %s", what, msg)
}

// unreachable reports whether the engine did not answer or broke off its answer.
func unreachable(err error) bool {
	var netErr net.Error
	return client.IsErrConnectionFailed(err) || errdefs.IsUnavailable(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.As(err, &netErr)
}

var (
	versionRefused = lazyregexp.New(`client version [0-9.]+ is too (old|new)`)
	// networkGone matches errors about a missing network, not a missing container or image.
	networkGone = lazyregexp.New(`network \S+ not found`)
	// beingRemoved matches errors about a container that is being removed, which counts as
	// gone.
	beingRemoved = lazyregexp.New(`marked for removal|removal of container .* is already in progress`)
	// engineBroken matches errors that an engine returns if its containerd does not answer.
	engineBroken = lazyregexp.New(`containerd\.sock|transport is closing|ttrpc: closed`)
)

// short returns the short form of a container id, as Docker shows it.
func short(id string) string {
	if len(id) > 12 {
		return id[:12]
	}
	return id
}
