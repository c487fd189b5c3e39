package runner

import (
	"errors"
	"slices"
	"strings"

	"carma/containers"
	"carma/mapper/model"
)

// beginEnding returns the end of an attempt if its container could not be started.
func (w *worker) beginEnding(err error) ending {
	if errors.Is(err, errGone) || errors.Is(err, containers.ErrNoPod) {
		return ending{class: model.ExitInfrastructure, message: err.Error()}
	}
	return w.unstarted(containers.StartFaultOf(err), err.Error())
}

// unstarted returns the end of an attempt after a failed start. The task is at fault, or
// else the engine, a GPU or a full namespace.
func (w *worker) unstarted(f *containers.StartFault, said string) ending {
	if f.Code == containers.HookRefuses && w.deps.Attachment.Refuse() {
		w.deps.Log.Warn().Msg("NVIDIA's hook refuses what docker run --gpus asks for: containers get their GPUs otherwise from now on, if they can")
	}
	if f.Scope == containers.ScopeGPU && w.namesOther(f) {
		c := *f
		f, c.Scope = &c, containers.ScopeUnknown
	}
	if f.Scope == containers.ScopeTask {
		return ending{class: model.ExitCannotStart, code: f.ExitCode(), message: said}
	}
	if f.Scope == containers.ScopeNamespace {
		said = f.Cause
	}
	return ending{
		class: model.ExitInfrastructure, code: 125, message: "its container could not be started: " + said,
		fault: &model.Fault{Scope: model.BreakerScope(f.Scope), Code: f.Code, Cause: f.Cause, Remedy: f.Remedy, GPUs: w.atFault(f)},
	}
}

// namesOther reports whether a GPU fault names a GPU that carma did not assign to the
// attempt. The task itself has then requested the device, for example by --device.
func (w *worker) namesOther(f *containers.StartFault) bool {
	if f.Device == "" || w.atFault(f) != nil {
		return len(w.launch.Grants) == 0
	}
	mode, _, _ := w.deps.Attachment.Mode()
	for _, grant := range w.launch.Grants {
		id := string(grant.GPU)
		node := strings.HasPrefix(f.Device, "/dev/")
		if strings.HasPrefix(id, "MIG-") || node && w.deps.Attachment.Nodes(mode, []string{id}) == nil {
			return false // the device may be one of the attempt's GPUs
		}
	}
	return true
}

// atFault returns the GPU of the attempt that a fault names, or nil if it may be any of
// the attempt's GPUs.
func (w *worker) atFault(f *containers.StartFault) []model.GPUID {
	if f.Device == "" {
		return nil
	}
	mode, _, _ := w.deps.Attachment.Mode()
	for _, grant := range w.launch.Grants {
		id := string(grant.GPU)
		if id == f.Device || slices.Contains(w.deps.Attachment.Nodes(mode, []string{id}), f.Device) {
			return []model.GPUID{grant.GPU}
		}
	}
	return nil
}

// mpsFault converts the error of a failed start of MPS to a start fault, and nil to nil.
func mpsFault(err error) error {
	if err == nil {
		return nil
	}
	return &containers.StartFault{
		Scope: containers.ScopeGPU, Code: "mps", Cause: "MPS does not start: " + err.Error(),
		Remedy: "carma mps status, and the daemon's log", Text: "MPS does not start: " + err.Error(),
	}
}

// wrongGPUs returns the start fault of a container that sees other GPUs than it was
// given.
func wrongGPUs(err error) *containers.StartFault {
	return &containers.StartFault{
		Scope: containers.ScopeGPU, Code: "wrong-gpus", Cause: err.Error(),
		Remedy: "carma doctor, GPU attachment", Text: err.Error(),
	}
}
