package containerd

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"

	"carma/containers"
)

// fail turns an error of the client into one of the contract's, led by what
// was tried: the caller's own context first, then the connection, and the
// machine's faults before the submitter's.
func (d *Driver) fail(ctx context.Context, what string, err error) error {
	if err == nil {
		return nil
	}
	err = native(err)
	msg := containers.CleanMessage(err.Error())
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", what, ctx.Err())
	case away(err):
		return fmt.Errorf("%s: %w: %s", what, containers.ErrUnavailable, msg)
	case errdefs.IsNotFound(err):
		return fmt.Errorf("%s: %w: %s", what, containers.ErrNotFound, msg)
	case containers.MachineFault(msg):
		return fmt.Errorf("%s: %w", what, containers.ReadStartFault(msg))
	case errdefs.IsInvalidArgument(err) || errors.Is(err, containers.ErrInvalid) || containers.SubmitterFault(msg):
		return fmt.Errorf("%s: %w: %s", what, containers.ErrInvalid, msg)
	}
	return fmt.Errorf("%s: %s", what, msg)
}

// native makes the codes of the services' answers errors of package errdefs;
// the client does so only for some.
func native(err error) error {
	if err == nil {
		return nil
	}
	if n := errgrpc.ToNative(err); n != nil && !errdefs.IsUnknown(n) {
		return n
	}
	return err
}

// away reports whether containerd did not answer, or stopped in the middle of
// an answer, or went down while it was at it.
func away(err error) bool {
	return errdefs.IsUnavailable(err) || wentDown.MatchString(err.Error())
}

// wentDown: what containerd says of its shims while it goes down.
var wentDown = regexp.MustCompile(`ttrpc: closed|transport is closing|server is shutting down|error reading from server: EOF`)
