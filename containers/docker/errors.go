package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"syscall"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"

	"carma/containers"
)

// fail turns an error of the client into one of the contract's, led by what
// was tried. Order matters: the caller's own context first, then the
// connection, and the machine's faults before the submitter's, because an
// engine answers "bad request" to both.
func (d *Driver) fail(ctx context.Context, cli *client.Client, what string, err error) error {
	if err == nil {
		return nil
	}
	msg := containers.CleanMessage(err.Error())
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", what, ctx.Err())
	case versionRefused.MatchString(msg):
		d.renew(cli)
		return fmt.Errorf("%s: %w: %s", what, containers.ErrUnavailable, msg)
	case unreachable(err) || engineBroken.MatchString(msg):
		return fmt.Errorf("%s: %w: %s", what, containers.ErrUnavailable, msg)
	case errdefs.IsNotFound(err) && !networkGone.MatchString(msg) || beingRemoved.MatchString(msg):
		return fmt.Errorf("%s: %w: %s", what, containers.ErrNotFound, msg)
	case containers.MachineFault(msg):
		return fmt.Errorf("%s: %w", what, containers.ReadStartFault(msg))
	case errdefs.IsInvalidArgument(err) || containers.SubmitterFault(msg):
		return fmt.Errorf("%s: %w: %s", what, containers.ErrInvalid, msg)
	}
	return fmt.Errorf("%s: %s", what, msg)
}

// unreachable reports whether the engine did not answer, or stopped in the
// middle of an answer.
func unreachable(err error) bool {
	var netErr net.Error
	return client.IsErrConnectionFailed(err) || errdefs.IsUnavailable(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.As(err, &netErr)
}

var (
	versionRefused = regexp.MustCompile(`client version [0-9.]+ is too (old|new)`)
	// networkGone: what is not found is not the container or the image.
	networkGone = regexp.MustCompile(`network \S+ not found`)
	// beingRemoved: it is as good as gone.
	beingRemoved = regexp.MustCompile(`marked for removal|removal of container .* is already in progress`)
	// engineBroken: the engine answers, the containerd under it does not.
	engineBroken = regexp.MustCompile(`containerd\.sock|transport is closing|ttrpc: closed`)
)

// short is a container id as people know it.
func short(id string) string {
	if len(id) > 12 {
		return id[:12]
	}
	return id
}
