package runner

import (
	"context"
	"slices"
	"time"

	"carma/mapper/units"

	"carma/mapper"
	"carma/runner/tasklog"
)

// Live are the options that can change while the daemon runs, beside the
// mapper's. See [Options] for what they are.
type Live struct {
	Pull          string
	StopGrace     time.Duration
	AllowedMounts []string
	AdminGroup    string
	PerUser       PerUser
	Open          bool
	Bounds        Bounds // of tasks that are submitted or started from then on
	Keep          Keep
	Probing       Probing // but for Run
	// Output bounds it; nil: as it is.
	Output *tasklog.Limits
}

// live are those in force.
func (r *Runner) live() *Live { return r.set.Load() }

// liveOf are those that a daemon begins with. Bounds above what the machine has
// are refused.
func liveOf(o *Options) (*Live, error) {
	l := Live{
		Pull: o.Pull, StopGrace: o.StopGrace, AllowedMounts: slices.Clone(o.AllowedMounts), AdminGroup: o.AdminGroup, PerUser: o.PerUser,
		Open: o.Open, Keep: o.Keep, Probing: o.Probing,
	}
	var err error
	l.Bounds, err = o.Bounds.on(machine())
	return &l, err
}

// Reconfigure changes options while the daemon runs. It returns when those of
// the mapper are durable and in force.
func (r *Runner) Reconfigure(ctx context.Context, options mapper.Options, live Live) error {
	if err := options.Validate(); err != nil {
		return err
	}
	bounds, err := live.Bounds.on(machine())
	if err != nil {
		return err
	}
	err = r.do(ctx, &change{events: func(now units.Instant) ([]mapper.Event, []*Record, error) {
		return []mapper.Event{mapper.Configured{At: now, Options: options, Format: mapper.DecisionFormat, Program: r.opt.Version}}, nil, nil
	}})
	if err != nil {
		return err
	}
	live.AllowedMounts, live.Bounds = slices.Clone(live.AllowedMounts), bounds
	if live.Output != nil {
		r.Logs.SetLimits(*live.Output)
	}
	r.set.Store(&live)
	return nil
}
