package runner

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"carma/mapper/model"
	"carma/runner/gpu"
	"carma/runner/gpu/cgroup"
	"carma/runner/loop"
	"carma/runner/suspend"
)

// Suspending configures how tasks are suspended. A suspended task frees its GPUs without
// ending.
type Suspending struct {
	By Suspends
	// Driver is the version of the NVIDIA driver. Arch is the machine's architecture as
	// in GOARCH.
	Driver, Arch string
	// Off disables suspending. Suspended tasks still resume.
	Off bool
	// Move lets a task resume on another GPU of the same model.
	Move bool
	// Ready checks whether suspending works here, which may take a minute. Nothing is
	// suspended before Ready has returned nil. A nil function means that suspending
	// works.
	Ready func(context.Context) error
}

// Suspends suspends and resumes containers. [suspend.Suspender] implements it.
type Suspends interface {
	Suspend(ctx context.Context, c suspend.Container, f suspend.Facts) (suspend.Result, error)
	Resume(ctx context.Context, c suspend.Container, p suspend.Process, t suspend.Target) (suspend.Result, error)
	Recover(ctx context.Context, c suspend.Container, want suspend.Outcome, f suspend.Facts, t suspend.Target) (suspend.Result, error)
	Thaw(ctx context.Context, c suspend.Container) error
	Frozen(ctx context.Context, c suspend.Container) (bool, error)
}

// readiness records whether suspending works.
type readiness struct {
	mu  sync.Mutex
	yes bool
	why string // why not
}

// notAsked is the reason until Suspending.Ready has answered.
const notAsked = "the NVIDIA driver has not answered yet"

// get returns whether suspending works, and why not.
func (s *readiness) get() (bool, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.why == "" {
		return s.yes, notAsked
	}
	return s.yes, s.why
}

// suspendKind returns how tasks on a GPU can be suspended, whether this holds only for
// tasks alone on the GPU, and the reason for these restrictions.
func (r *Runner) suspendKind(d gpu.Device) (kind model.SuspendKind, alone bool, why string) {
	o := r.opt.Suspending
	if o == nil {
		return model.SuspendNever, false, cmp.Or(r.opt.NoSuspending, "carma cannot suspend tasks on "+r.GPUs.Name())
	}
	if o.Off {
		return model.SuspendNever, false, "suspend is off in the configuration"
	}
	facts := suspend.Facts{Driver: o.Driver, Arch: o.Arch, MIG: d.Parent != ""}
	if err := facts.Possible(false); err != nil {
		return model.SuspendNever, false, err.Error()
	}
	if o.Ready != nil {
		if yes, why := r.ready.get(); !yes {
			return model.SuspendNever, false, why
		}
	}
	kind = model.SuspendHere
	switch err := facts.Possible(true); {
	case err != nil:
		why = err.Error()
	case o.Move:
		kind = model.SuspendMove
	default:
		why = "suspend: here in the configuration"
	}
	if r.opt.MPS != nil {
		if how, _ := r.sharingOf(d); how == model.SharingMPS || how == model.SharingUsers {
			alone = true
		}
	}
	return kind, alone, why
}

// findSuspending checks whether suspending works here, and reports the result to the
// core.
func (r *Runner) findSuspending(ctx context.Context) {
	o := r.opt.Suspending
	if o == nil || o.Ready == nil || o.Off {
		return
	}
	if err := (suspend.Facts{Driver: o.Driver, Arch: o.Arch}).Possible(false); err != nil {
		r.Log.Info().Err(err).Msg("tasks cannot be suspended here")
		return
	}
	for pause := time.Second; ; pause = min(2*pause, 10*time.Minute) {
		err := o.Ready(ctx)
		if ctx.Err() != nil {
			return
		}
		r.ready.mu.Lock()
		r.ready.yes, r.ready.why = err == nil, ""
		if err != nil {
			r.ready.why = err.Error()
		}
		r.ready.mu.Unlock()
		if err == nil {
			r.loop.Post(loop.Fact(r.gpusFound(r.Clock.Now())))
			r.Log.Info().Str("driver", o.Driver).Msg("tasks can be suspended")
			return
		}
		r.Log.Info().Err(err).Dur("again_in", pause).Msg("tasks cannot be suspended here")
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// container returns the container with one of names, with its processes.
func (o *owners) container(names ...string) suspend.Container {
	c := suspend.Container{ID: names[0]}
	all, err := os.ReadDir(filepath.Join(o.root, "proc"))
	if err != nil {
		return c
	}
	for _, entry := range all {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		in, err := cgroup.Containers(o.root, pid)
		if err != nil {
			continue
		}
		if i := slices.IndexFunc(in, func(name string) bool { return slices.Contains(names, name) }); i >= 0 {
			c.ID = in[i]
			c.PIDs = append(c.PIDs, pid)
		}
	}
	return c
}

// usesIn returns the processes on GPUs in a sample.
func usesIn(samples []gpu.Sample) (all []suspend.Use) {
	for _, s := range samples {
		for _, p := range s.Processes {
			if p.PID != 0 {
				all = append(all, suspend.Use{PID: p.PID, GPU: s.UUID})
			}
		}
	}
	return all
}

// isUnavailable reports whether an error means that the driver could not be asked. The
// state of the task is then unknown, and the task is not lost.
func isUnavailable(err error) bool {
	return errors.As(err, new(*suspend.Unavailable)) || errors.Is(err, suspend.ErrClosed)
}
