package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"carma/containers"
	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/engine"
	"carma/runner/limits"
)

// Modes of limiting the GPU memory of tasks, beside their frameworks and the watchdog.
const (
	// LimitAuto limits memory by the driver where that is possible, and by MPS where MPS
	// is on.
	LimitAuto = "auto"
	// LimitDriver does the same, but a task does not start if the driver cannot limit its
	// GPUs.
	LimitDriver = "driver"
	// LimitMPS limits memory by MPS only.
	LimitMPS = "mps"
	// LimitOff uses neither.
	LimitOff = "off"
)

// Limits configures the limits of tasks' GPU memory. The zero value is LimitOff and CapsOff.
type Limits struct {
	// Mode is LimitAuto, LimitDriver, LimitMPS or LimitOff; empty means off. MPS.LimitMemory
	// has the limits of MPS.
	Mode string
	// Keeper sets the driver's limits, or is nil if none are set.
	Keeper *limits.Keeper
	// Burst lets a task use more than its grant: the memory that is free on its
	// GPUs when it starts. Only the grant is guaranteed.
	Burst bool
	// Caps is CapsGrowth, CapsFractions or CapsOff; empty means off.
	Caps string
	// Context is the memory of a CUDA context, which an allocator does not
	// count.
	Context units.Bytes
	// User returns the uid that sets the limits. Nil means this process's uid. For tests.
	User func() int
}

func (l Limits) driver() bool {
	return l.Keeper != nil && (l.Mode == LimitAuto || l.Mode == LimitDriver)
}

// CannotLimitError says that the driver must limit tasks and cannot. Fix is the fix, or
// empty if there is none.
type CannotLimitError struct{ Why, Fix string }

// Error returns why.
func (e *CannotLimitError) Error() string { return "GPU memory cannot be limited: " + e.Why }

// limiter holds the findings of the daemon about the driver's limits.
type limiter struct {
	limits.Support
	// guarantees is set if the engine leaves time to clear a soft limit before it removes
	// the control group.
	guarantees bool
}

// findLimits checks whether the driver can limit tasks. Only under LimitDriver it returns
// a [CannotLimitError] if the driver cannot.
func (r *Runner) findLimits(ctx context.Context) error {
	o := r.opt.Limits
	if !o.driver() {
		r.limiter.Why = "memory-limit is " + o.Mode
		return nil
	}
	for _, err := range o.Keeper.Sweep() {
		r.Log.Warn().Err(err).Msg("a limit of GPU memory was not cleared in time")
	}
	r.limiter.Support = r.findLimitSupport(ctx)
	if h, ok := engine.As[containers.Parker](r.Driver); ok {
		r.limiter.guarantees = h.BeforeGone(r.clearLimits)
	}
	if o.Mode == LimitDriver && !r.limiter.OK() {
		return &CannotLimitError{r.limiter.Why, r.limiter.Fix}
	}
	if o.Mode == LimitDriver {
		for _, d := range r.gpus.Ordered() {
			if d.Parent != "" {
				return &CannotLimitError{fmt.Sprintf("GPU %d is a MIG instance, which the driver does not limit", d.Index), "write memory-limit: auto"}
			}
		}
	}
	return nil
}

func (r *Runner) findLimitSupport(ctx context.Context) limits.Support {
	o := r.opt.Limits
	if r.opt.SetSpeed != nil {
		return limits.Support{Why: "the GPUs are simulated"}
	}
	h, ok := engine.As[containers.Parker](r.Driver)
	if !ok {
		return limits.Support{Why: r.Driver.Name() + " cannot park a container until it is limited"}
	}
	uid := os.Geteuid()
	if o.User != nil {
		uid = o.User()
	}
	s := limits.Detect(ctx, o.Keeper.Tool, o.Keeper.Root, uid)
	if !s.OK() {
		return s
	}
	if err := h.CanPark(); err != nil {
		s.Why = "containers cannot be parked until they are limited: " + err.Error()
	}
	return s
}

// limited returns the GPUs on which the driver limits the attempt.
func (w *worker) limited() (gpus []string) {
	if !w.opt.Limits.driver() || !w.limiter.OK() || w.rec.Task.NextExclusive {
		return nil
	}
	for _, g := range w.grants() {
		if w.gpus.Devices()[g.GPU].Parent == "" {
			gpus = append(gpus, string(g.GPU))
		}
	}
	return gpus
}

// bursts reports whether the attempt may use more than its grant. If so,
// nothing else may stop it at the grant.
func (w *worker) bursts() bool { return w.opt.Limits.Burst && len(w.limited()) > 0 }

// limit parks the container of an attempt and has the driver limit it. Under
// LimitAuto a limit that cannot be set is only logged.
func (w *worker) limit(ctx context.Context, id string) error {
	gpus := w.limited()
	if len(gpus) == 0 {
		return nil
	}
	pid, err := w.park(ctx, id)
	if err == nil && pid != 0 {
		err = w.keepTo(ctx, id, pid, gpus)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil, errors.Is(err, containers.ErrInvalid), errors.Is(err, containers.ErrNotFound), errors.Is(err, containers.ErrUnavailable):
		return err
	case w.opt.Limits.Mode == LimitDriver:
		return limitFault(err)
	}
	w.Log.Warn().Err(err).Int64("task", int64(w.launch.Task)).Msg("the driver does not limit the task's GPU memory")
	return nil
}

func (w *worker) park(ctx context.Context, id string) (pid int, err error) {
	h, _ := engine.As[containers.Parker](w.Driver) // the driver is a Parker, else limited would be empty
	_, err = w.engine.Retry(ctx, func() error {
		return engine.Within(ctx, engine.StartLimit, "park container", func(ctx context.Context) (err error) { pid, err = h.Park(ctx, id); return err })
	})
	return pid, err
}

// bounds returns the limits of an attempt on gpus. The hard limit is its grant
// and, if it may burst, the free memory. The soft limit is its grant, if the
// engine leaves time to clear it.
func (w *worker) bounds(ctx context.Context, gpus []string) map[string]limits.Limit {
	room := map[model.GPUID]units.Bytes{}
	if w.opt.Limits.Burst {
		_ = w.loop.Look(ctx, func(s *mapper.State) {
			for _, g := range s.GPUs() {
				room[g.ID] = g.Free(s.Options().Headroom)
			}
		})
	}
	out := map[string]limits.Limit{}
	for _, g := range w.grants() {
		if !slices.Contains(gpus, string(g.GPU)) {
			continue
		}
		l := limits.Limit{Hard: int64(g.Memory + max(0, room[g.GPU]))}
		if w.limiter.guarantees {
			l.Soft = int64(g.Memory)
		}
		out[string(g.GPU)] = l
	}
	return out
}

// keepTo has the driver limit a container to its bounds on gpus.
func (w *worker) keepTo(ctx context.Context, id string, pid int, gpus []string) error {
	bounds := w.bounds(ctx, gpus)
	w.monitor.SetSoftLimits(id, w.key(), bounds)
	return w.opt.Limits.Keeper.Limit(ctx, id, pid, bounds)
}

// clearLimits clears the limits of a container.
func (r *Runner) clearLimits(ctx context.Context, id string) {
	if !r.opt.Limits.driver() {
		return
	}
	defer r.monitor.ClearSoftLimits(id)
	if err := r.opt.Limits.Keeper.Clear(ctx, id); err != nil && ctx.Err() == nil {
		r.Log.Warn().Err(err).Str("container", id[:min(len(id), 40)]).Msg("the limits of a container's GPU memory could not be cleared")
	}
}

// tiers returns the limits on the GPU memory of a task that shares a GPU, best first, and
// why the driver or MPS does not limit it.
func (r *Runner) tiers(gpu model.GPUID) (in []string, not []string) {
	o := r.opt.Limits
	switch {
	case o.driver() && r.limiter.OK() && r.gpus.Devices()[gpu].Parent == "":
		by := "driver limit per container"
		if o.Burst {
			by += ", up to the free room"
		}
		in = append(in, by)
	case o.driver() && r.limiter.OK():
		not = append(not, "no driver limit: a MIG instance has none")
	default:
		not = append(not, "no driver limit: "+r.limiter.Why)
	}
	_, why := r.sharing.Of(r.gpus.Devices()[gpu])
	switch m := r.opt.MPS; {
	case why != "":
		not = append(not, "no MPS limit: "+why)
	case m == nil:
		not = append(not, "no MPS limit: MPS is off")
	case !m.LimitMemory:
		not = append(not, "no MPS limit: mps-memory-limit is off")
	default:
		in = append(in, "MPS limit per process of tasks on one GPU")
	}
	switch o.Caps {
	case CapsGrowth:
		in = append(in, "frameworks grow (JAX, TensorFlow)")
	case CapsFractions:
		in = append(in, "framework caps (JAX, PyTorch)")
	}
	if w := r.opt.Mapper.Watchdog; w != "" && w != "off" {
		in = append(in, "watchdog: "+w)
	}
	if len(in) == 0 {
		in = append(in, "nothing")
	}
	return in, not
}

// tierText returns the tiers of a GPU in one line.
func (r *Runner) tierText(gpu model.GPUID) string {
	in, not := r.tiers(gpu)
	text := strings.Join(in, ", ")
	if len(not) > 0 {
		text += " (" + strings.Join(not, "; ") + ")"
	}
	return text
}

// recallLimits finds the soft limits that an earlier daemon set for the container of an
// attempt.
func (w *worker) recallLimits(id string) {
	if !w.opt.Limits.driver() {
		return
	}
	if l := w.opt.Limits.Keeper.Noted(id); l != nil {
		w.monitor.SetSoftLimits(id, w.key(), l)
	}
}
