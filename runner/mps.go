package runner

import (
	"context"
	"errors"
	"slices"
	"time"

	"carma/containers"
	"carma/mapper/model"
	"carma/runner/mps"
)

// MPS configures how tasks share GPUs through NVIDIA's Multi-Process Service.
type MPS struct {
	Groups *mps.Groups
	// Auto lets tasks share GPUs without MPS where MPS does not work.
	Auto bool
	// Threads limits the SMs of a task in percent, or is 0 for no limit.
	Threads int
	// LimitMemory lets MPS limit a task to its grant.
	LimitMemory bool
	// HostIPC puts tasks into the host's IPC namespace, which some drivers use for memory
	// that MPS clients share.
	HostIPC bool
}

// mpsGroup returns the MPS group of an attempt, or nil if it is no client. An attempt is
// no client if MPS is off, the task is exclusive, an earlier attempt ended with a fault
// of an MPS server, or the server could not run as the container's user. A fault ends all
// clients of the server, and it is unknown which client caused it. Without MPS the driver
// isolates the tasks.
func (w *worker) mpsGroup() *mps.Group {
	m, t := w.opt.MPS, &w.rec.Task
	if m == nil || w.noMPS || len(w.launch.Grants) == 0 || t.NextExclusive || faultedByMPS(t, w.launch.Attempt) {
		return nil
	}
	var gpus []string
	for _, g := range w.launch.Grants {
		if how, _ := m.on(w.gpus.Devices()[g.GPU]); how != model.SharingMPS && how != model.SharingUsers {
			return nil
		}
		gpus = append(gpus, string(g.GPU))
	}
	uid, gid, ok := w.rec.ContainerUser()
	if !m.Groups.Shared && (!ok || m.Auto && !mayServe(uid)) {
		return nil
	}
	return m.Groups.Of(uid, gid, gpus)
}

// faultedByMPS reports whether an MPS server has failed under an attempt of a task
// before this one.
func faultedByMPS(t *model.Task, attempt int) bool {
	return slices.ContainsFunc(t.Attempts, func(a model.Attempt) bool { return a.N < attempt && a.Class == model.ExitMPSFault })
}

// share makes the container a client of its MPS group.
func (w *worker) share(spec *containers.Spec) {
	group := w.mpsGroup()
	if group == nil {
		return
	}
	limits := mps.Limits{Threads: w.opt.MPS.Threads}
	// A program on several GPUs often shows each of its processes only one. CUDA
	// drops all limits of a process if one is for a GPU that it does not see.
	if w.opt.MPS.LimitMemory && !w.bursts() && len(w.launch.Grants) == 1 {
		limits.Memory = []int64{int64(w.launch.Grants[0].Memory)}
	}
	spec.Mounts = append(spec.Mounts, containers.Mount{Source: group.Pipe, Target: group.Pipe})
	spec.Env = append(spec.Env, limits.Env(group.Pipe)...)
	if w.opt.MPS.HostIPC {
		spec.IPC = containers.IPCHost
	}
}

// mpsGrace is the time after which a task that MPS has disconnected is killed.
const mpsGrace = 5 * time.Second

// ownsProcess reports whether a process of this machine is in the container.
func (w *worker) ownsProcess(pid int) bool {
	owner := w.owners.owner
	if w.opt.Owner != nil {
		owner = w.opt.Owner
	}
	task, attempt, ok := owner(pid)
	return ok && task == w.launch.Task && attempt == w.launch.Attempt
}

// mpsFault reports whether an attempt ended because its MPS server has a fault or has
// ended.
func (w *worker) mpsFault(ctx context.Context, class containers.Class, cuda bool) bool {
	group := w.mpsGroup()
	if group == nil || class != containers.ClassProgram || !cuda {
		return false
	}
	servers, err := group.Servers(ctx)
	return errors.Is(err, mps.ErrNotRunning) || slices.ContainsFunc(servers, func(s mps.Server) bool { return s.Status == mps.Fault })
}

// repairMPS restarts the broken parts of a group after a fault, when its clients have left.
// It gives up after half a minute.
func (w *worker) repairMPS(ctx context.Context) {
	group := w.mpsGroup()
	if group == nil {
		return
	}
	for range 30 {
		wrong, err := w.opt.MPS.Groups.Fix(ctx, group)
		if err != nil && ctx.Err() == nil {
			w.Log.Warn().Err(err).Str("group", group.Name).Msg("MPS could not be put in order")
		}
		if !wrong {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
}
