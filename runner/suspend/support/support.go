package support

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"carma/mapper/model"
	"carma/runner/gpu"
	"carma/runner/gpu/cgroup"
	"carma/runner/suspend"

	"github.com/rs/zerolog"
)

// Suspender suspends and resumes containers. [suspend.Suspender] implements it.
type Suspender interface {
	Suspend(ctx context.Context, c suspend.Container, f suspend.Facts) (suspend.Result, error)
	Resume(ctx context.Context, c suspend.Container, p suspend.Process, t suspend.Target) (suspend.Result, error)
	Recover(ctx context.Context, c suspend.Container, want suspend.Outcome, f suspend.Facts, t suspend.Target) (suspend.Result, error)
	Thaw(ctx context.Context, c suspend.Container) error
	Frozen(ctx context.Context, c suspend.Container) (bool, error)
}

// Options configure how tasks are suspended. A suspended task frees its GPUs without
// ending.
type Options struct {
	By Suspender
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

// Support decides where tasks can be suspended. It is safe for concurrent use.
type Support struct {
	o    *Options // nil if tasks are not suspended
	none string   // why o is nil
	real bool     // the GPUs are real

	mu    sync.Mutex
	ready bool
	why   string // why not
}

// notAsked is the reason until [Options.Ready] has answered.
const notAsked = "the NVIDIA driver has not answered yet"

// New returns the support for some settings. Without settings, none is the reason.
// simulated is set if the GPUs are simulated: they need nothing of the machine.
func New(o *Options, none string, simulated bool) *Support {
	return &Support{o: o, none: none, real: !simulated, why: notAsked}
}

// Kind returns how tasks on a GPU can be suspended, whether this holds only for tasks
// alone on the GPU, and the reason for these restrictions. clients is set if tasks that
// share the GPU are clients of MPS.
func (s *Support) Kind(d gpu.Device, clients bool) (kind model.SuspendKind, alone bool, why string) {
	o := s.o
	if o == nil {
		return model.SuspendNever, false, s.none
	}
	if o.Off {
		return model.SuspendNever, false, "suspend is off in the configuration"
	}
	facts := suspend.Facts{Driver: o.Driver, Arch: o.Arch, MIG: d.Parent != ""}
	if err := facts.Possible(false); err != nil {
		return model.SuspendNever, false, err.Error()
	}
	if o.Ready != nil {
		if yes, why := s.state(); !yes {
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
	return kind, clients, why
}

// Text describes how tasks on a GPU can be suspended, and the fix if they cannot. root has
// the machine's /proc and /sys.
func (s *Support) Text(d gpu.Device, clients bool, root string) (text, fix string) {
	kind, alone, why := s.Kind(d, clients)
	if kind != model.SuspendNever && s.real {
		if without, help := lacks(os.Geteuid(), root); without != "" {
			kind, why, fix = model.SuspendNever, without, help
		}
	}
	switch kind {
	case model.SuspendNever:
		if fix == "" && s.o != nil && !s.o.Off {
			fix = fixFor(why)
		}
		return Never + why, fix
	case model.SuspendMove:
		text = "yes, and they may come back to another GPU of the same model"
	default:
		text = "yes, back to the same GPU"
		if why != "" {
			text += " (" + why + ")"
		}
	}
	if alone {
		text += "; only those that have it alone, the others are clients of MPS"
	}
	return text, ""
}

// Never is the begin of a text about a GPU on which no task can be suspended. The reason
// follows.
const Never = "no: "

// Find calls [Options.Ready] until it succeeds or ctx ends, and then found.
func (s *Support) Find(ctx context.Context, log zerolog.Logger, found func()) {
	o := s.o
	if o == nil || o.Ready == nil || o.Off {
		return
	}
	if err := (suspend.Facts{Driver: o.Driver, Arch: o.Arch}).Possible(false); err != nil {
		log.Info().Err(err).Msg("tasks cannot be suspended here")
		return
	}
	for pause := time.Second; ; pause = min(2*pause, 10*time.Minute) {
		err := o.Ready(ctx)
		if ctx.Err() != nil {
			return
		}
		s.set(err)
		if err == nil {
			found()
			log.Info().Str("driver", o.Driver).Msg("tasks can be suspended")
			return
		}
		log.Info().Err(err).Dur("again_in", pause).Msg("tasks cannot be suspended here")
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// set records the answer of Ready.
func (s *Support) set(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ready = err == nil; !s.ready {
		s.why = err.Error()
	}
}

// state returns whether suspending works, and why not.
func (s *Support) state() (ready bool, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready, s.why
}

// MaySuspend returns an error that says why the daemon cannot suspend tasks on real GPUs,
// apart from the driver, or nil.
func MaySuspend() error {
	if why, _ := lacks(os.Geteuid(), "/"); why != "" {
		return errors.New(why)
	}
	return nil
}

// lacks returns the missing requirement of the driver and the control groups for a daemon
// with this uid, and how to fix it. root has the machine's /proc and /sys.
func lacks(euid int, root string) (why, fix string) {
	switch {
	case euid != 0:
		return "carma daemon is not root, who alone may freeze containers and have the driver suspend programs of others", "run carma daemon as root"
	case !cgroup.SeesHost(root):
		return "carma daemon runs in a PID namespace of its own; the NVIDIA driver needs the machine's process numbers", "run carma in the host's PID namespace: docker run --pid host"
	case !freezes(root):
		return "the kernel has no control groups that freeze containers", "mount /sys/fs/cgroup with cgroup2, or the freezer of version 1"
	}
	return "", ""
}

// freezes reports whether containers can be frozen by their control groups. Version 2
// always can freeze them, version 1 needs the freezer hierarchy.
func freezes(root string) bool {
	return slices.ContainsFunc([]string{"sys/fs/cgroup/cgroup.controllers", "sys/fs/cgroup/freezer"}, func(name string) bool {
		_, err := os.Stat(filepath.Join(root, name))
		return err == nil
	})
}

// fixFor returns the fix for a reason not to suspend, or "" if there is none.
func fixFor(why string) string {
	switch {
	case strings.Contains(why, "the NVIDIA driver is ") || strings.Contains(why, "older than"):
		return "install NVIDIA driver 580 or newer"
	case strings.Contains(why, "built without cgo"):
		return "CGO_ENABLED=1 make build, with a C compiler in PATH"
	case strings.Contains(why, "did not start"):
		return "see the daemon's log: the suspend helper has written why"
	}
	return ""
}
