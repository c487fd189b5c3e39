package runner

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"

	"carma/containers"
	"carma/containers/cdi"
)

// attach is how containers get their GPUs, and why: what the options say, or
// what the engine and the machine have now.
func (r *Runner) attach() (mode containers.Attach, why string, err error) {
	if r.opt.Attach != "" {
		return r.opt.Attach, "as configured", nil
	}
	e := r.engine.found()
	_, hook := exec.LookPath("nvidia-container-runtime-hook")
	mode, why, err = containers.ChooseAttach(containers.Choice{
		Driver: r.Driver.Name(), Engine: e, Hook: hook == nil, CDI: r.missingCDI(e.CDIDirs),
	})
	if err != nil {
		return "", "", fmt.Errorf("no way to give containers their GPUs: %w", err)
	}
	return mode, why, nil
}

// missingCDI says why a GPU of this machine is not to be had by CDI.
func (r *Runner) missingCDI(dirs []string) error {
	files, err := cdi.Read(dirs)
	if err != nil {
		return err
	}
	var uuids []string
	for id := range r.devices {
		uuids = append(uuids, string(id))
	}
	slices.Sort(uuids)
	return files.Missing(uuids)
}

// nodes are the device nodes of GPUs in a container, as far as they are known.
func (r *Runner) nodes(mode containers.Attach, uuids []string) []string {
	if nodes := containers.NodesOf(uuids); nodes != nil {
		return nodes
	}
	if mode != containers.AttachCDI {
		return nil
	}
	files, err := cdi.Read(r.engine.found().CDIDirs)
	if err != nil {
		return nil
	}
	return containers.OnlyGPUNodes(files.Nodes(uuids))
}

// checkGPUs looks whether the container that was started got the GPUs it was
// given. That this cannot be looked up is not held against it.
func (w *worker) checkGPUs(ctx context.Context, id string) error {
	spec := containers.Spec{GPUs: w.uuids()}
	if w.adopted == nil {
		mode, _, err := w.attach()
		if err != nil {
			return nil
		}
		spec.Attach = mode
	} else if spec.Attach = containers.Attach(w.adopted.Labels[LabelAttach]); spec.Attach == "" {
		return nil // an older program made it, and looked
	}
	var got containers.Attachment
	_, err := w.engine.retry(ctx, func() (err error) { got, err = w.Driver.Attached(ctx, id); return err })
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, containers.ErrNotFound) {
			w.Log.Warn().Err(err).Int64("task", int64(w.launch.Task)).Msg("the container's GPUs could not be looked at")
		}
		return nil
	}
	if err := containers.CheckGPUs(spec, got, w.nodes(spec.Attach, spec.GPUs)); err != nil {
		w.Log.Error().Err(err).Int64("task", int64(w.launch.Task)).Str("attach", string(spec.Attach)).Msg("the task is stopped")
		// Before its GPUs count as free.
		if stop := w.kill(ctx, id); stop != nil {
			return fmt.Errorf("%w; it could not be stopped: %w", err, stop)
		}
		return err
	}
	return nil
}
