package limiter

import (
	"context"
	"fmt"
	"os"
	"strings"

	"carma/containers"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/engine"
	"carma/runner/gpu"
	"carma/runner/inventory"
	"carma/runner/limits"

	"github.com/rs/zerolog"
)

// SoftLimits follows the soft limits of containers: memory that the driver reserves for
// them is not foreign.
type SoftLimits interface {
	SetSoftLimits(container string, key gpu.AttemptKey, l map[string]limits.Limit)
	ClearSoftLimits(container string)
}

// Deps holds the parts that a [Limiter] works with.
type Deps struct {
	Driver containers.Driver
	Engine *engine.Health
	GPUs   *inventory.GPUs
	Soft   SoftLimits
	// Simulated is set if the GPUs are simulated.
	Simulated bool
	// Watchdog is the mapper's setting of the watchdog.
	Watchdog string
	// MPS returns the limit that MPS sets for tasks on a GPU, or why it sets none.
	MPS func(gpu.Device) (in, not string)
	// Free returns the memory on each GPU that no task has.
	Free func(context.Context) map[model.GPUID]units.Bytes
	Log  zerolog.Logger
}

// Limiter limits the GPU memory of tasks.
type Limiter struct {
	opt     Options
	deps    Deps
	support limits.Support
	// guarantees is set if the engine leaves time to clear a soft limit before it removes
	// the control group.
	guarantees bool
}

// New checks whether the driver can limit tasks. Only under ModeDriver it returns
// a [CannotLimitError] if the driver cannot.
func New(ctx context.Context, opt Options, deps Deps) (*Limiter, error) {
	l := &Limiter{opt: opt, deps: deps}
	if !opt.driver() {
		l.support.Why = "memory-limit is " + opt.Mode
		return l, nil
	}
	for _, err := range opt.Keeper.Sweep() {
		deps.Log.Warn().Err(err).Msg("a limit of GPU memory was not cleared in time")
	}
	l.support = l.findSupport(ctx)
	if h, ok := engine.As[containers.Parker](deps.Driver); ok {
		l.guarantees = h.BeforeGone(l.Clear)
	}
	if opt.Mode == ModeDriver && !l.support.OK() {
		return nil, &CannotLimitError{l.support.Why, l.support.Fix}
	}
	if opt.Mode == ModeDriver {
		for _, d := range deps.GPUs.Ordered() {
			if d.Parent != "" {
				return nil, &CannotLimitError{fmt.Sprintf("GPU %d is a MIG instance, which the driver does not limit", d.Index), "write memory-limit: auto"}
			}
		}
	}
	return l, nil
}

func (l *Limiter) findSupport(ctx context.Context) limits.Support {
	if l.deps.Simulated {
		return limits.Support{Why: "the GPUs are simulated"}
	}
	h, ok := engine.As[containers.Parker](l.deps.Driver)
	if !ok {
		return limits.Support{Why: l.deps.Driver.Name() + " cannot park a container until it is limited"}
	}
	uid := os.Geteuid()
	if l.opt.User != nil {
		uid = l.opt.User()
	}
	s := limits.Detect(ctx, l.opt.Keeper.Tool, l.opt.Keeper.Root, uid)
	if !s.OK() {
		return s
	}
	if err := h.CanPark(); err != nil {
		s.Why = "containers cannot be parked until they are limited: " + err.Error()
	}
	return s
}

// Clear clears the limits of a container.
func (l *Limiter) Clear(ctx context.Context, id string) {
	if !l.opt.driver() {
		return
	}
	defer l.deps.Soft.ClearSoftLimits(id)
	if err := l.opt.Keeper.Clear(ctx, id); err != nil && ctx.Err() == nil {
		l.deps.Log.Warn().Err(err).Str("container", id[:min(len(id), 40)]).Msg("the limits of a container's GPU memory could not be cleared")
	}
}

// Grows reports whether frameworks take memory as they need it.
func (l *Limiter) Grows() bool { return l.opt.Caps != CapsOff && l.opt.Caps != "" }

// Tiers returns the limits on the GPU memory of a task that shares a GPU, best first, and
// why the driver or MPS does not limit it.
func (l *Limiter) Tiers(id model.GPUID) (in []string, not []string) {
	d := l.deps.GPUs.Devices()[id]
	switch {
	case l.opt.driver() && l.support.OK() && d.Parent == "":
		by := "driver limit per container"
		if l.opt.Burst {
			by += ", up to the free room"
		}
		in = append(in, by)
	case l.opt.driver() && l.support.OK():
		not = append(not, "no driver limit: a MIG instance has none")
	default:
		not = append(not, "no driver limit: "+l.support.Why)
	}
	if by, why := l.deps.MPS(d); by != "" {
		in = append(in, by)
	} else {
		not = append(not, why)
	}
	switch l.opt.Caps {
	case CapsGrowth:
		in = append(in, "frameworks grow (JAX, TensorFlow)")
	case CapsFractions:
		in = append(in, "framework caps (JAX, PyTorch)")
	}
	if w := l.deps.Watchdog; w != "" && w != "off" {
		in = append(in, "watchdog: "+w)
	}
	if len(in) == 0 {
		in = append(in, "nothing")
	}
	return in, not
}

// TierText returns the tiers of a GPU in one line.
func (l *Limiter) TierText(id model.GPUID) string {
	in, not := l.Tiers(id)
	text := strings.Join(in, ", ")
	if len(not) > 0 {
		text += " (" + strings.Join(not, "; ") + ")"
	}
	return text
}
