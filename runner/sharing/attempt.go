package sharing

import (
	"context"
	"errors"
	"slices"
	"time"

	"carma/containers"
	"carma/mapper/model"
	"carma/runner/gpu"
	"carma/runner/mps"
	"carma/runner/record"
)

// Attempt is an attempt that may be a client of MPS. A nil Attempt is no client.
type Attempt struct {
	state  *State
	rec    *record.Record
	launch model.Launch
	// without is set if the attempt is not a client because MPS does not run. It is
	// written before the container is known to anybody else.
	without bool
	// client is nil until Follow, and if the attempt is no client. It is written before the
	// output is read.
	client *client
	// disconnected is set once MPS was asked to disconnect the task. Only the goroutine
	// that stops the task uses it.
	disconnected bool
}

// Attempt returns the attempt of a launch. rec is the record of its task.
func (s *State) Attempt(rec *record.Record, launch model.Launch) *Attempt {
	return &Attempt{state: s, rec: rec, launch: launch}
}

func (a *Attempt) key() gpu.AttemptKey {
	return gpu.AttemptKey{Task: a.launch.Task, Attempt: a.launch.Attempt}
}

// gpus returns the GPUs of the attempt.
func (a *Attempt) gpus() (ids []model.GPUID) {
	for _, grant := range a.launch.Grants {
		ids = append(ids, grant.GPU)
	}
	return ids
}

// Group returns the MPS group of an attempt, or nil if it is no client. An attempt is
// no client if MPS is off, the task is exclusive, an earlier attempt ended with a fault
// of an MPS server, or the server could not run as the container's user. A fault ends all
// clients of the server, and it is unknown which client caused it. Without MPS the driver
// isolates the tasks.
func (a *Attempt) Group() *mps.Group {
	if a == nil || a.state.opt.MPS == nil {
		return nil
	}
	m, t := a.state.opt.MPS, &a.rec.Task
	if a.without || len(a.launch.Grants) == 0 || t.NextExclusive || faultedByMPS(t, a.launch.Attempt) {
		return nil
	}
	devices := a.state.opt.Devices()
	var gpus []string
	for _, id := range a.gpus() {
		if how, _ := m.on(devices[id]); how != model.SharingMPS && how != model.SharingUsers {
			return nil
		}
		gpus = append(gpus, string(id))
	}
	uid, gid, ok := a.rec.ContainerUser()
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

// Join decides whether an attempt is a client of MPS, and starts the control daemon of
// its group, unless it runs. Under `auto` a task shares its GPUs without MPS if the
// control daemon does not start.
func (a *Attempt) Join(ctx context.Context) error {
	defer a.state.report()
	defer a.recordNoClient()
	group := a.Group()
	if group == nil {
		return nil
	}
	s, m := a.state, a.state.opt.MPS
	if m.Auto && s.Why(time.Now()) != "" {
		a.without = true
		return nil
	}
	err := m.Groups.Ensure(ctx, group)
	if !m.Auto || ctx.Err() != nil {
		return err
	}
	if s.failed(err, time.Now()); err != nil {
		a.without = true
		s.opt.Log.Warn().Err(err).Str("group", group.Name).Msg("MPS does not start: tasks take turns")
	}
	return nil
}

// Recall finds out whether an attempt that an earlier daemon has started is a client.
// It is one if its control daemon runs.
func (a *Attempt) Recall(ctx context.Context) {
	if group := a.Group(); group != nil && errors.Is(group.Ping(ctx), mps.ErrNotRunning) {
		a.without = true
	}
	a.recordNoClient()
	a.state.report()
}

// recordNoClient records an attempt that is no client although the mapper treats it as
// one. The mapper itself knows that tasks alone on their GPUs, and tasks after an MPS
// fault, are no clients.
func (a *Attempt) recordNoClient() {
	if a.state.opt.MPS == nil || a.launch.Alone || a.rec.Task.NextExclusive || a.Group() != nil || faultedByMPS(&a.rec.Task, a.launch.Attempt) {
		return
	}
	a.state.setApart(a.key(), a.gpus())
}

// Leave handles the end of an attempt.
func (a *Attempt) Leave(class model.Class) {
	if a.state.opt.MPS == nil {
		return
	}
	if a.state.opt.MPS.Auto && a.Group() != nil {
		a.state.ended(class)
	}
	a.state.setApart(a.key(), nil)
	a.state.report()
}

// Share makes the container a client of its MPS group. limit tells MPS to limit it to its
// grant, if MPS limits memory at all.
func (a *Attempt) Share(spec *containers.Spec, limit bool) {
	group := a.Group()
	if group == nil {
		return
	}
	m := a.state.opt.MPS
	limits := mps.Limits{Threads: m.Threads}
	// A program on several GPUs often shows each of its processes only one. CUDA
	// drops all limits of a process if one is for a GPU that it does not see.
	if m.LimitMemory && limit && len(a.launch.Grants) == 1 {
		limits.Memory = []int64{int64(a.launch.Grants[0].Memory)}
	}
	spec.Mounts = append(spec.Mounts, containers.Mount{Source: group.Pipe, Target: group.Pipe})
	spec.Env = append(spec.Env, limits.Env(group.Pipe)...)
	if m.HostIPC {
		spec.IPC = containers.IPCHost
	}
}

// Follow begins to follow an attempt that should be a client of MPS, until stop is called.
// gone is closed if its program continues without its GPUs. It is nil for an attempt that
// is no client.
func (a *Attempt) Follow() (gone <-chan struct{}, stop func()) {
	if a.Group() == nil {
		return nil, func() {}
	}
	a.client = &client{gpus: a.gpus(), gone: make(chan struct{})}
	a.state.setClient(a.key(), a.client)
	return a.client.gone, func() { a.state.setClient(a.key(), nil) }
}

// Hear processes a line of the attempt's output.
func (a *Attempt) Hear(line []byte) {
	if a != nil && a.client != nil {
		a.client.hears(line)
	}
}

// ServerFailed reports whether the attempt is a client of an MPS server that has a fault
// or has ended.
func (a *Attempt) ServerFailed(ctx context.Context) bool {
	group := a.Group()
	if group == nil {
		return false
	}
	servers, err := group.Servers(ctx)
	return errors.Is(err, mps.ErrNotRunning) || slices.ContainsFunc(servers, func(s mps.Server) bool { return s.Status == mps.Fault })
}

// Repair restarts the broken parts of a group after a fault, when its clients have left.
// It gives up after half a minute.
func (a *Attempt) Repair(ctx context.Context) {
	group := a.Group()
	if group == nil {
		return
	}
	for range 30 {
		wrong, err := a.state.opt.MPS.Groups.Fix(ctx, group)
		if err != nil && ctx.Err() == nil {
			a.state.opt.Log.Warn().Err(err).Str("group", group.Name).Msg("MPS could not be put in order")
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

// grace is the time after which a task that MPS has disconnected is killed.
const grace = 5 * time.Second

// Disconnect disconnects a client of MPS once, and gives it some time to end without a
// kill, because a kill may leave the MPS server in an undefined state. owns reports whether
// a process of this machine is the attempt's.
func (a *Attempt) Disconnect(ctx context.Context, owns func(pid int) bool) {
	group := a.Group()
	if group == nil || a.disconnected {
		return
	}
	a.disconnected = true
	if _, err := group.TerminateOf(ctx, owns); err != nil && ctx.Err() == nil {
		a.state.opt.Log.Warn().Err(err).Int64("task", int64(a.launch.Task)).Msg("MPS could not disconnect the task before its end")
	}
	select {
	case <-ctx.Done():
	case <-time.After(grace):
	}
}
