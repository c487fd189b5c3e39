package runner

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"carma/containers"
	"carma/containers/bare"
	"carma/containers/cdi"
)

// attach returns how containers get their GPUs, and why. It returns the configured mode,
// or else the one that the engine and the machine allow now.
func (r *Runner) attach() (mode containers.Attach, why string, err error) {
	if r.opt.Attach != "" {
		return r.opt.Attach, "as configured", nil
	}
	e := r.engine.Info()
	_, hook := exec.LookPath("nvidia-container-runtime-hook")
	mode, why, err = containers.ChooseAttach(containers.Choice{
		Driver: r.Driver.Name(), Engine: e, Hook: hook == nil, Refused: r.hookRefuses.Load(), CDI: r.missingCDI(e.CDIDirs),
	})
	if err != nil {
		return "", "", fmt.Errorf("no way to give containers their GPUs: %w", err)
	}
	return mode, why, nil
}

// attachment returns how the attempt's container gets its GPUs, or "" if it has none. A
// container with the machine's own folders gets the device nodes and no libraries. It has
// the machine's libraries, and nothing can be injected into read-only folders. So the
// machine needs no NVIDIA software beside the driver. If the nodes are not known (MIG),
// it gets its GPUs like any other container.
func (w *worker) attachment() (mode containers.Attach, nodes []string, err error) {
	if len(w.launch.Grants) == 0 {
		return "", nil, nil
	}
	if w.rec.Submit.Bare() && w.opt.Attach != containers.AttachSimulated {
		if nodes = containers.NodesOf(w.uuids()); nodes != nil {
			return containers.AttachNodes, append(nodes, bare.Nodes()...), nil
		}
	}
	mode, _, err = w.attach()
	return mode, nil, err
}

// missingCDI returns an error if the CDI files in dirs lack a GPU of this
// machine.
func (r *Runner) missingCDI(dirs []string) error {
	files, err := cdi.Read(dirs)
	if err != nil {
		return err
	}
	var uuids []string
	for id := range r.devices() {
		uuids = append(uuids, string(id))
	}
	slices.Sort(uuids)
	return files.Missing(uuids)
}

// nodes returns the device nodes of GPUs in a container, or nil if unknown.
func (r *Runner) nodes(mode containers.Attach, uuids []string) []string {
	if nodes := containers.NodesOf(uuids); nodes != nil {
		return nodes
	}
	if mode != containers.AttachCDI {
		return nil
	}
	files, err := cdi.Read(r.engine.Info().CDIDirs)
	if err != nil {
		return nil
	}
	return containers.OnlyGPUNodes(files.Nodes(uuids))
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
	} else if spec.Attach = containers.Attach(w.adopted.Labels[LabelAttach]); spec.Attach == "" {
		return nil // an older carma made and checked the container
	} else if launched := w.adopted.Labels[LabelGPUs]; launched != "" {
		spec.GPUs = strings.Split(launched, ",") // the task may have moved to other GPUs since
	}
	var got containers.Attachment
	_, err := w.engine.Retry(ctx, func() (err error) { got, err = w.Driver.Attached(ctx, id); return err })
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, containers.ErrNotFound) {
			w.Log.Warn().Err(err).Int64("task", int64(w.launch.Task)).Msg("the container's GPUs could not be read")
		}
		return nil
	}
	if err := containers.CheckGPUs(spec, got, w.nodes(spec.Attach, spec.GPUs)); err != nil {
		w.Log.Error().Err(err).Int64("task", int64(w.launch.Task)).Str("attach", string(spec.Attach)).Msg("the task is stopped")
		// The container must end before its GPUs count as free.
		if stop := w.kill(ctx, id); stop != nil {
			return fmt.Errorf("%w; it could not be stopped: %w", err, stop)
		}
		return err
	}
	return nil
}
