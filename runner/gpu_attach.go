package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"carma/containers"
	"carma/containers/bare"
	"carma/mapper/model"
	"carma/runner/label"
	"carma/runner/loop"
)

// attachment returns how the attempt's container gets its GPUs, or "" if it has none. A
// container with the machine's own folders gets the device nodes and no libraries. It has
// the machine's libraries, and nothing can be injected into read-only folders. So the
// machine needs no NVIDIA software beside the driver. If the nodes are not known (MIG),
// it gets its GPUs like any other container.
func (w *worker) attachment() (mode containers.Attach, nodes []string, err error) {
	if len(w.launch.Grants) == 0 {
		return "", nil, nil
	}
	if w.rec.Submit.Bare() && w.deps.Attach != containers.AttachSimulated {
		if nodes = containers.NodesOf(w.uuids()); nodes != nil {
			return containers.AttachNodes, append(nodes, bare.Nodes()...), nil
		}
	}
	mode, _, err = w.deps.Attachment.Mode()
	return mode, nil, err
}

// checkGPUs compares the GPUs of a started container with the GPUs that it was given, and
// kills the container if they differ. It returns no error if the GPUs cannot be read.
func (w *worker) checkGPUs(ctx context.Context, id string) error {
	if len(w.launch.Grants) == 0 {
		return nil
	}
	spec := containers.Spec{GPUs: w.uuids()}
	if w.adopted == nil {
		mode, _, err := w.attachment()
		if err != nil {
			return nil
		}
		spec.Attach = mode
	} else if spec.Attach = containers.Attach(w.adopted.Labels[label.Attach]); spec.Attach == "" {
		return nil // an older carma made and checked the container
	} else if launched := w.adopted.Labels[label.GPUs]; launched != "" {
		spec.GPUs = strings.Split(launched, ",") // the task may have moved to other GPUs since
	}
	var got containers.Attachment
	_, err := w.deps.Engine.Retry(ctx, func() (err error) { got, err = w.deps.Driver.Attached(ctx, id); return err })
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, containers.ErrNotFound) {
			w.deps.Log.Warn().Err(err).Int64("task", int64(w.launch.Task)).Msg("the container's GPUs could not be read")
		}
		return nil
	}
	if err := containers.CheckGPUs(spec, got, w.deps.Attachment.Nodes(spec.Attach, spec.GPUs)); err != nil {
		w.deps.Log.Error().Err(err).Int64("task", int64(w.launch.Task)).Str("attach", string(spec.Attach)).Msg("the task is stopped")
		// The container must end before its GPUs count as free.
		if stop := w.kill(ctx, id); stop != nil {
			return fmt.Errorf("%w; it could not be stopped: %w", err, stop)
		}
		return err
	}
	return nil
}

// gpusReset says in the log and the journal that GPUs were reset.
func (r *Runner) gpusReset(ids []model.GPUID) {
	for _, id := range ids {
		r.Log.Info().Str("gpu", string(id)).Msg("the GPU was reset: it gets tasks again")
	}
	r.loop.Post(loop.Fact(model.GPUsReset{At: r.Clock.Now(), GPUs: ids}))
}
