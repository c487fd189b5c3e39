package containerd

import (
	"context"
	"errors"
	"fmt"

	"github.com/containerd/errdefs"
	"github.com/containerd/errdefs/pkg/errgrpc"

	"carma/containers"
	"carma/internal/lazyregexp"
)

// fail turns an error of the client into an error of the [containers.Driver] contract.
// what is the call that failed. The order of the checks matters: the caller's own
// context, then the connection, then faults of the machine, then faults of the submitter.
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

// native turns gRPC codes into errors of package errdefs. The client does so for
// some calls only.
func native(err error) error {
	if err == nil {
		return nil
	}
	if n := errgrpc.ToNative(err); n != nil && !errdefs.IsUnknown(n) {
		return n
	}
	return err
}

// away reports whether containerd did not answer, broke off its answer, or stopped during
// the call.
func away(err error) bool {
	return errdefs.IsUnavailable(err) || wentDown().MatchString(err.Error())
}

// wentDown matches containerd's messages about its shims while containerd shuts down.
var wentDown = lazyregexp.New(`ttrpc: closed|transport is closing|server is shutting down|error reading from server: EOF`)
