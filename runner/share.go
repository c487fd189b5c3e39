package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"carma/mapper/units"

	"carma/containers"
	"carma/mapper"
	"carma/runner/api"
	"carma/runner/mps"
)

// MPS is how tasks share GPUs through NVIDIA's Multi-Process Service.
type MPS struct {
	Groups *mps.Groups
	// Threads is the ceiling on the SMs of a task in percent; 0: none.
	Threads int
	// LimitMemory lets MPS refuse a task more than its grant.
	LimitMemory bool
	// HostIPC puts tasks into the host's IPC namespace, which drivers need
	// that keep what clients share there.
	HostIPC bool
}

// mpsGroup is the MPS group an attempt is a client of, or nil: MPS is off, the
// task has its GPUs for itself, or it was in the fault of a server before. What
// one client does wrong takes all down, and nobody can tell whose fault it was;
// without MPS the driver keeps them apart.
func (w *worker) mpsGroup() *mps.Group {
	m, t := w.opt.MPS, &w.rec.Task
	if m == nil || len(w.launch.Grants) == 0 || t.Alone {
		return nil
	}
	if slices.ContainsFunc(t.Attempts, func(a mapper.Attempt) bool { return a.N < w.launch.Attempt && a.Class == mapper.ExitMPSFault }) {
		return nil
	}
	var gpus []string
	for _, g := range w.launch.Grants {
		gpus = append(gpus, string(g.GPU))
	}
	uid, gid := w.rec.containerUser()
	return m.Groups.Of(uid, gid, gpus)
}

// containerUser is whom the container runs as; a user that only the image's
// own files know counts as root.
func (r *Record) containerUser() (uid, gid int) {
	if r.UID != 0 {
		return r.UID, r.GID
	}
	user, group, _ := strings.Cut(cmp.Or(r.Submit.User, r.ImageUser), ":")
	uid, err := strconv.Atoi(user)
	if err != nil || uid < 0 {
		return 0, 0
	}
	gid, err = strconv.Atoi(group)
	if err != nil || gid < 0 {
		gid = 0
	}
	return uid, gid
}

// share makes the container a client of its MPS group.
func (w *worker) share(spec *containers.Spec) {
	group := w.mpsGroup()
	if group == nil {
		return
	}
	limits := mps.Limits{Threads: w.opt.MPS.Threads}
	if w.opt.MPS.LimitMemory && !w.bursts() {
		most := units.Bytes(0) // which number a GPU has in the container is up to CUDA
		for _, g := range w.launch.Grants {
			most = max(most, g.Memory)
		}
		for range w.launch.Grants {
			limits.Memory = append(limits.Memory, int64(most))
		}
	}
	spec.Mounts = append(spec.Mounts, containers.Mount{Source: group.Pipe, Target: group.Pipe})
	spec.Env = append(spec.Env, limits.Env(group.Pipe)...)
	spec.HostIPC = w.opt.MPS.HostIPC
}

// startMPS starts the control daemon of an attempt's group where it is missing.
func (w *worker) startMPS(ctx context.Context) error {
	group := w.mpsGroup()
	if group == nil {
		return nil
	}
	return w.opt.MPS.Groups.Ensure(ctx, group)
}

// mpsGrace is what a task has left to end by itself after MPS has disconnected
// it, before it is killed.
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

// mpsFault reports whether an attempt's end was its MPS server's: the server is
// in fault, or gone.
func (w *worker) mpsFault(ctx context.Context, class containers.Class, cuda bool) bool {
	group := w.mpsGroup()
	if group == nil || class != containers.ClassProgram || !cuda {
		return false
	}
	servers, err := group.Servers(ctx)
	return errors.Is(err, mps.ErrNotRunning) || slices.ContainsFunc(servers, func(s mps.Server) bool { return s.Status == mps.Fault })
}

// mendMPS puts a group in order again after a fault, when its clients have
// left.
func (w *worker) mendMPS(ctx context.Context) {
	group := w.mpsGroup()
	if group == nil {
		return
	}
	for range 30 {
		wrong, err := w.opt.MPS.Groups.Mend(ctx, group)
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

// checkMPS tells whether MPS can do what the configuration wants of it.
func (r *Runner) checkMPS(ctx context.Context) api.Check {
	c := api.Check{Name: "MPS", Status: "ok", Detail: "off: tasks on one GPU take turns"}
	m := r.opt.MPS
	if m == nil {
		return c
	}
	binary := cmp.Or(m.Groups.Binary, mps.Binary)
	if _, err := exec.LookPath(binary); err != nil {
		c.Status, c.Detail, c.Mend = "failure", binary+" is not in PATH; tasks that share GPUs cannot start", "install the NVIDIA driver's utilities, or set mps: off"
		return c
	}
	list, err := m.Groups.List()
	if err != nil {
		c.Status, c.Detail, c.Mend = "failure", err.Error(), "make "+m.Groups.Dir+" readable and writable for the daemon"
		return c
	}
	running, clients, faults := 0, 0, 0
	for _, g := range list {
		servers, err := g.Servers(ctx)
		if errors.Is(err, mps.ErrNotRunning) {
			continue
		}
		if err != nil {
			c.Status, c.Detail, c.Mend = "failure", fmt.Sprintf("group %s: %v", g.Name, err), "carma mps stop --all --force, then carma runs what died again"
			return c
		}
		running++
		for _, s := range servers {
			clients += len(s.Clients)
			if s.Status == mps.Fault {
				faults++
			}
		}
	}
	c.Detail = fmt.Sprintf("on: %d control daemons, %d clients, in %s", running, clients, m.Groups.Dir)
	if faults > 0 {
		c.Status, c.Detail = "warning", fmt.Sprintf("%s; %d servers in FAULT until their clients have left", c.Detail, faults)
	}
	return c
}
