package runner

import (
	"errors"
	"slices"

	"carma/containers"
	"carma/mapper"
)

// beginEnding is the end of an attempt whose container could not be started.
func (w *worker) beginEnding(err error) ending {
	if errors.Is(err, errGone) {
		return ending{class: mapper.ExitInfrastructure, message: err.Error()}
	}
	return w.unstarted(containers.StartFaultOf(err), err.Error())
}

// unstarted lays a failed start at the door of the task, or at that of the
// engine or a GPU.
func (w *worker) unstarted(f *containers.StartFault, said string) ending {
	if f.Scope == containers.ScopeTask {
		return ending{class: mapper.ExitCannotStart, code: 125, message: said}
	}
	return ending{
		class: mapper.ExitInfrastructure, code: 125, message: "its container could not be started: " + said,
		fault: &mapper.Fault{Scope: mapper.Scope(f.Scope), Code: f.Code, Cause: f.Cause, Remedy: f.Remedy, GPUs: w.atFault(f)},
	}
}

// atFault are the GPUs of the attempt that a fault names; nil: it may be any of
// them.
func (w *worker) atFault(f *containers.StartFault) []mapper.GPUID {
	if f.Device == "" {
		return nil
	}
	mode, _, _ := w.attach()
	for _, grant := range w.launch.Grants {
		id := string(grant.GPU)
		if id == f.Device || slices.Contains(w.nodes(mode, []string{id}), f.Device) {
			return []mapper.GPUID{grant.GPU}
		}
	}
	return nil
}

// mpsFault says that the GPUs could not be shared as they are to be.
func mpsFault(err error) error {
	if err == nil {
		return nil
	}
	return &containers.StartFault{
		Scope: containers.ScopeGPU, Code: "mps", Cause: "MPS does not start: " + err.Error(),
		Remedy: "carma mps status, and the daemon's log", Text: "MPS does not start: " + err.Error(),
	}
}

// limitFault says that the driver does not limit the GPU memory of a task that
// must not run without.
func limitFault(err error) error {
	text := "its GPU memory could not be limited: " + err.Error()
	return &containers.StartFault{
		Scope: containers.ScopeGPU, Code: "memory-limit", Cause: text,
		Remedy: "carma doctor tells more; with memory-limit: auto tasks run without", Text: text,
	}
}

// wrongGPUs says that a container has not got the GPUs it was given.
func wrongGPUs(err error) *containers.StartFault {
	return &containers.StartFault{
		Scope: containers.ScopeGPU, Code: "wrong-gpus", Cause: err.Error(),
		Remedy: "carma doctor, GPU attachment", Text: err.Error(),
	}
}
