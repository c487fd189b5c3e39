package suspend

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"carma/runner/gpu/cgroup"
)

// First versions of the driver (cuda-checkpoint, README; CUDA 13.0 for moving).
const (
	firstDriver = 570 // the functions of the library
	firstMoving = 580 // restore onto another GPU
)

// Use is a process that NVML shows on a GPU.
type Use struct {
	PID int
	GPU string // UUID
}

// Facts are the caller's data about the machine and the task.
type Facts struct {
	Driver string // version of the NVIDIA driver, such as 580.95.05
	Arch   string // architecture of the machine, as in GOARCH
	// Uses is NVML's list of processes, of all GPUs and containers.
	Uses []Use
	MIG  bool // the task is on a MIG instance
	MPS  bool // its processes are clients of MPS
	// Managed is set if the program is known to use managed memory (UVM). This cannot be
	// observed from outside, because every CUDA process has /dev/nvidia-uvm open.
	Managed bool
	// Bytes is the GPU memory of the task, for the time limit of copying, or 0 if unknown.
	Bytes int64
}

// Refusal is the reason why a task cannot be suspended or moved, in one line. The task is
// unchanged.
type Refusal struct {
	Reason Reason
	Text   string
}

func (r *Refusal) Error() string { return r.Text }

// Reason is a short name for a refusal.
type Reason string

// Reasons.
const (
	ReasonDriver    Reason = "driver"
	ReasonMoving    Reason = "driver-moving"
	ReasonArch      Reason = "architecture"
	ReasonMIG       Reason = "mig"
	ReasonMPS       Reason = "mps"
	ReasonManaged   Reason = "managed-memory"
	ReasonNone      Reason = "no-cuda-process"
	ReasonSeveral   Reason = "several-cuda-processes"
	ReasonGPUs      Reason = "several-gpus"
	ReasonUnknown   Reason = "process-unknown"
	ReasonNamespace Reason = "pid-namespace"
	ReasonState     Reason = "state"
	ReasonGPU       Reason = "gpu"
	ReasonFrozen    Reason = "frozen"
)

func refuse(r Reason, format string, args ...any) *Refusal {
	return &Refusal{r, fmt.Sprintf(format, args...)}
}

// Possible returns an error if a task with these facts cannot be suspended at all. It
// only examines the facts. With moving, it also checks whether the task can resume on
// another GPU.
func (f Facts) Possible(moving bool) error {
	major, _, _ := strings.Cut(f.Driver, ".")
	version, err := strconv.Atoi(major)
	switch {
	case err != nil:
		return refuse(ReasonDriver, "the version of the NVIDIA driver is not known (%q); suspending needs %d or newer", f.Driver, firstDriver)
	case version < firstDriver:
		return refuse(ReasonDriver, "the NVIDIA driver is %s; suspending needs %d or newer", f.Driver, firstDriver)
	case moving && version < firstMoving:
		return refuse(ReasonMoving, "the NVIDIA driver is %s; moving to another GPU needs %d or newer", f.Driver, firstMoving)
	case f.Arch != "amd64":
		// Error 801 at checkpoint with driver 580 (cuda-checkpoint#51). No newer driver
		// is known to support it.
		return refuse(ReasonArch, "the NVIDIA driver suspends processes on x86-64 only; this machine is %s", f.Arch)
	case f.MIG:
		return refuse(ReasonMIG, "the task is on a MIG instance; the NVIDIA driver cannot suspend there") // cuda-checkpoint#42
	case f.MPS:
		return refuse(ReasonMPS, "the task is a client of MPS, which the NVIDIA driver cannot suspend") // "not supported" at the lock, docs/hardware/h100-2026-11-22.md
	case f.Managed && version < firstMoving:
		return refuse(ReasonManaged, "the task uses managed memory (UVM), which the NVIDIA driver %s cannot suspend", f.Driver)
	case f.Managed:
		// The task's threads run between thaw and restore, when a managed pointer is not
		// mapped (CRIU's CUDA plugin, resume_device).
		return refuse(ReasonManaged, "the task uses managed memory (UVM); a thread that touches it before it is back would crash")
	}
	return nil
}

// Check returns the process of the container that would be suspended. The error is a
// *Refusal if the process may not be suspended. Check changes nothing.
func (s *Suspender) Check(ctx context.Context, c Container, f Facts) (Process, error) {
	if err := f.Possible(false); err != nil {
		return Process{}, err
	}
	if !cgroup.SeesHost(s.opt.Root) {
		return Process{}, refuse(ReasonNamespace, "carma daemon runs in a PID namespace of its own; the NVIDIA driver needs the machine's process numbers")
	}
	if frozen, err := s.opt.Freezer.Frozen(ctx, c); err != nil {
		return Process{}, fmt.Errorf("is the container frozen: %w", err)
	} else if frozen {
		return Process{}, refuse(ReasonFrozen, "the container is frozen (docker pause); a frozen process does not answer the NVIDIA driver")
	}
	found, err := s.find(ctx, c)
	if err != nil {
		return Process{}, err
	}
	gpus := map[string]bool{}
	for _, u := range f.Uses {
		if !slices.Contains(c.PIDs, u.PID) {
			continue
		}
		if !slices.ContainsFunc(found, func(p known) bool { return p.PID == u.PID }) {
			return Process{}, refuse(ReasonUnknown, "process %d uses a GPU, and the NVIDIA driver does not know it as a CUDA process", u.PID)
		}
		gpus[u.GPU] = true
	}
	switch {
	case len(found) == 0:
		return Process{}, refuse(ReasonNone, "no process of the task uses CUDA now")
	case len(found) > 1:
		return Process{}, refuse(ReasonSeveral, "%d processes of the task use CUDA (%s); only a task with one can be suspended", len(found), pids(found))
	case len(gpus) > 1: // restore failed with 2 GPUs (cuda-checkpoint#27)
		return Process{}, refuse(ReasonGPUs, "the task uses %d GPUs; suspending was not tried with more than one", len(gpus))
	case found[0].state == Failed:
		return Process{}, refuse(ReasonState, "an earlier suspend of process %d went wrong; it does not come back", found[0].PID)
	}
	return found[0].Process, nil
}

// known is a CUDA process and its state.
type known struct {
	Process
	state State
}

func pids(all []known) string {
	var out []string
	for _, p := range all {
		out = append(out, strconv.Itoa(p.PID))
	}
	return strings.Join(out, ", ")
}

// find returns the CUDA processes of a container, by number. Other processes, such as
// data-loader workers, are no obstacle (cuda-checkpoint#28). The container must not be
// frozen: the driver gets no answer from a frozen process.
func (s *Suspender) find(ctx context.Context, c Container) ([]known, error) {
	var out []known
	all := slices.Clone(c.PIDs)
	slices.Sort(all)
	for _, pid := range slices.Compact(all) {
		p, err := s.look(c, pid)
		if errors.Is(err, errEnded) || errors.Is(err, errForeign) { // its process number may belong to another process now
			continue
		}
		if err != nil {
			return nil, err
		}
		state, err := s.state(ctx, c, p)
		switch {
		case errors.Is(err, errEnded), errors.Is(err, errNoCUDA):
		case err != nil:
			return nil, err
		default:
			out = append(out, known{p, state})
		}
	}
	return out, nil
}
