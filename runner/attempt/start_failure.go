package attempt

import (
	"errors"
	"slices"
	"strings"

	"carma/containers"
	"carma/mapper/model"
)

// beginEnding returns the end of an attempt if its container could not be started.
func (c *classifier) beginEnding(err error) ending {
	if errors.Is(err, errGone) || errors.Is(err, containers.ErrNoPod) {
		return ending{class: model.ExitInfrastructure, message: err.Error()}
	}
	return c.unstarted(containers.StartFaultOf(err), err.Error())
}

// unstarted returns the end of an attempt after a failed start. The task is at fault, or
// else the engine, a GPU or a full namespace.
func (c *classifier) unstarted(f *containers.StartFault, said string) ending {
	if f.Code == containers.HookRefuses && c.deps.Attachment.Refuse() {
		c.deps.Log.Warn().Msg("NVIDIA's hook refuses what docker run --gpus asks for: containers get their GPUs otherwise from now on, if they can")
	}
	if f.Scope == containers.ScopeGPU && c.namesOther(f) {
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
		fault: &model.Fault{Scope: model.BreakerScope(f.Scope), Code: f.Code, Cause: f.Cause, Remedy: f.Remedy, GPUs: c.atFault(f)},
	}
}

// namesOther reports whether a GPU fault names a GPU that carma did not assign to the
// attempt. The task itself has then requested the device, for example by --device.
func (c *classifier) namesOther(f *containers.StartFault) bool {
	if f.Device == "" || c.atFault(f) != nil {
		return len(c.launch.Grants) == 0
	}
	mode, _, _ := c.deps.Attachment.Mode()
	for _, grant := range c.launch.Grants {
		id := string(grant.GPU)
		node := strings.HasPrefix(f.Device, "/dev/")
		if strings.HasPrefix(id, "MIG-") || node && c.deps.Attachment.Nodes(mode, []string{id}) == nil {
			return false // the device may be one of the attempt's GPUs
		}
	}
	return true
}

// atFault returns the GPU of the attempt that a fault names, or nil if it may be any of
// the attempt's GPUs.
func (c *classifier) atFault(f *containers.StartFault) []model.GPUID {
	if f.Device == "" {
		return nil
	}
	mode, _, _ := c.deps.Attachment.Mode()
	for _, grant := range c.launch.Grants {
		id := string(grant.GPU)
		if id == f.Device || slices.Contains(c.deps.Attachment.Nodes(mode, []string{id}), f.Device) {
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
