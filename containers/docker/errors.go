package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
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
	msg := clean(err.Error())
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s: %w", what, ctx.Err())
	case versionRefused.MatchString(msg):
		d.renew(cli)
		return fmt.Errorf("%s: %w: %s", what, containers.ErrUnavailable, msg)
	case unreachable(err) || engineBroken.MatchString(msg):
		return fmt.Errorf("%s: %w: %s", what, containers.ErrUnavailable, msg)
	case errdefs.IsNotFound(err) || beingRemoved.MatchString(msg):
		return fmt.Errorf("%s: %w: %s", what, containers.ErrNotFound, msg)
	case containers.MachineFault(msg):
		return fmt.Errorf("%s: %s", what, msg)
	case errdefs.IsInvalidArgument(err) || submitterFault.MatchString(msg):
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
	// beingRemoved: it is as good as gone.
	beingRemoved = regexp.MustCompile(`marked for removal|removal of container .* is already in progress`)
	// engineBroken: the engine answers, the containerd under it does not.
	engineBroken = regexp.MustCompile(`containerd\.sock|transport is closing|ttrpc: closed`)
	// submitterFault: what the engine reports as its own error (500) although
	// the request is to blame. Texts of engines 20.10 to 29 and runc 1.0 to 1.3.
	submitterFault = regexp.MustCompile(`(?i)unable to find (user|group)|no matching entries in (passwd|group) file|` +
		`uids and gids must be in range|executable file not found|exec: ".*": (stat .*: )?(no such file|permission denied|is a directory)|` +
		`exec format error|cannot mkdir: .* is not a directory|: not a directory|are you trying to mount|` +
		`mkdir .*: (no such file|read-only file system|not a directory|permission denied)|` +
		`chdir to cwd|invalid mount|bind source path does not exist|error mounting .* to rootfs`)
)

var noise = strings.NewReplacer(
	"Error response from daemon: ", "", "failed to create shim task: ", "", "failed to create task for container: ", "",
	"OCI runtime create failed: ", "", "runc create failed: ", "", "unable to start container process: ", "",
	"error during container init: ", "", ": unknown:", ":", "\n", "; ", "\r", "",
)

var mergedDir = regexp.MustCompile(`/[^\s:"]*/(overlay2|rootfs)/[0-9a-f]{32,}(-init)?/merged`)

// clean makes one line for people out of an engine's message: the layers of
// software it went through and the engine's own paths say nothing to them.
func clean(msg string) string {
	msg = noise.Replace(strings.TrimSpace(msg))
	msg = mergedDir.ReplaceAllString(msg, "")
	msg = strings.TrimSuffix(strings.TrimSpace(msg), ": unknown")
	const limit = 400
	if len(msg) > limit {
		msg = strings.ToValidUTF8(msg[:limit], "") + "..."
	}
	return msg
}

// short is a container id as people know it.
func short(id string) string {
	if len(id) > 12 {
		return id[:12]
	}
	return id
}
