package runner

import (
	"context"
	"slices"
	"time"

	"carma/mapper"
)

// Live are the options that can change while the daemon runs, beside the
// mapper's. See [Options] for what they are.
type Live struct {
	Pull          string
	StopGrace     time.Duration
	AllowedMounts []string
	AdminGroup    string
	PerUser       PerUser
}

// live are those in force.
func (r *Runner) live() *Live { return r.set.Load() }

func liveOf(o *Options) *Live {
	return &Live{Pull: o.Pull, StopGrace: o.StopGrace, AllowedMounts: slices.Clone(o.AllowedMounts), AdminGroup: o.AdminGroup, PerUser: o.PerUser}
}

// Reconfigure changes options while the daemon runs. It returns when those of
// the mapper are durable and in force.
func (r *Runner) Reconfigure(ctx context.Context, options mapper.Options, live Live) error {
	if err := options.Validate(); err != nil {
		return err
	}
	err := r.do(ctx, &change{events: func(now mapper.Instant) ([]mapper.Event, []*Record, error) {
		return []mapper.Event{mapper.Configured{At: now, Options: options, Format: mapper.DecisionFormat, Program: r.opt.Version}}, nil, nil
	}})
	if err != nil {
		return err
	}
	live.AllowedMounts = slices.Clone(live.AllowedMounts)
	r.set.Store(&live)
	return nil
}
