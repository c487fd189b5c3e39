package attempt

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"carma/containers"
	"carma/runner/label"
)

// checkGPUs compares the GPUs of a started container with the GPUs that it was given, and
// kills the container if they differ. It returns no error if the GPUs cannot be read.
func (a *Attempt) checkGPUs(ctx context.Context, id string) error {
	if len(a.launch.Grants) == 0 {
		return nil
	}
	spec := containers.Spec{GPUs: a.uuids()}
	if a.adopted == nil {
		mode, _, err := a.attachment()
		if err != nil {
			return nil
		}
		spec.Attach = mode
	} else if spec.Attach = containers.Attach(a.adopted.Labels[label.Attach]); spec.Attach == "" {
		return nil // an older carma made and checked the container
	} else if launched := a.adopted.Labels[label.GPUs]; launched != "" {
		spec.GPUs = strings.Split(launched, ",") // the task may have moved to other GPUs since
	}
	var got containers.Attachment
	_, err := a.deps.Engine.Retry(ctx, func() (err error) { got, err = a.deps.Driver.Attached(ctx, id); return err })
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, containers.ErrNotFound) {
			a.deps.Log.Warn().Err(err).Int64("task", int64(a.launch.Task)).Msg("the container's GPUs could not be read")
		}
		return nil
	}
	if err := containers.CheckGPUs(spec, got, a.deps.Attachment.Nodes(spec.Attach, spec.GPUs)); err != nil {
		a.deps.Log.Error().Err(err).Int64("task", int64(a.launch.Task)).Str("attach", string(spec.Attach)).Msg("the task is stopped")
		// The container must end before its GPUs count as free.
		if stop := a.kill(ctx, id); stop != nil {
			return fmt.Errorf("%w; it could not be stopped: %w", err, stop)
		}
		return err
	}
	return nil
}
