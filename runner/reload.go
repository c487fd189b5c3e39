package runner

import (
	"cmp"
	"context"
	"slices"
	"time"

	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/admission"
	"carma/runner/loop"
	"carma/runner/machine"
	"carma/runner/probing"
	"carma/runner/record"
	"carma/runner/retention"
	"carma/runner/tasklog"
)

// Live are the options that can change while the daemon runs, beside the
// mapper's. [Options] describes them.
type Live struct {
	Pull          string
	StopGrace     time.Duration
	AllowedMounts []string
	HostTasks     string
	HostFolders   []string
	AdminGroup    string
	ClusterAdmins []string
	PerUser       admission.PerUser
	Open          bool
	OOMTexts      []string // see [Options]
	Fittings      admission.Fittings
	Bounds        machine.Bounds // for tasks that are submitted or started later
	Keep          retention.Keep
	Probing       probing.Settings // except Run
	// Output limits the stored output. Nil means no change.
	Output *tasklog.Limits
}

// live returns the options in force. They must not be modified.
func (r *Runner) live() *Live { return r.set.Load() }

// liveOf returns the options that a daemon begins with. It refuses bounds above
// the size of the machine.
func liveOf(o *Options) (*Live, error) {
	l := Live{
		Pull: o.Pull, StopGrace: o.StopGrace, AllowedMounts: slices.Clone(o.AllowedMounts), AdminGroup: o.AdminGroup, ClusterAdmins: slices.Clone(o.ClusterAdmins), PerUser: o.PerUser,
		Fittings: o.Fittings, HostTasks: o.HostTasks, HostFolders: slices.Clone(o.HostFolders), Open: o.Open, OOMTexts: slices.Clone(o.OOMTexts), Keep: o.Keep, Probing: o.Probing,
	}
	var err error
	l.Bounds, err = o.Bounds.On(machine.Size())
	return &l, cmp.Or(err, l.Fittings.Check())
}

// Reconfigure changes options while the daemon runs. It returns when the mapper's options
// are durable and in force. After an error nothing has changed. Cached answers of a cluster
// about its users are dropped, so that a right that was revoked there ends at once.
func (r *Runner) Reconfigure(ctx context.Context, options model.Options, live Live) error {
	if err := mapper.Validate(options); err != nil {
		return err
	}
	bounds, err := live.Bounds.On(machine.Size())
	err = cmp.Or(err, live.Fittings.Check())
	if err != nil {
		return err
	}
	err = r.loop.Do(ctx, &loop.Change{Events: func(now units.Instant) ([]model.Event, []*record.Record, error) {
		events := []model.Event{model.Configured{At: now, Options: options, Format: model.DecisionFormat, Program: r.opt.Version}}
		is, books := bounds.Host(r.opt.SetSpeed != nil)
		was, booked := r.live().Bounds.Host(r.opt.SetSpeed != nil)
		if is != was || books != booked {
			events = append(events, bounds.HostsFound(now, r.opt.SetSpeed != nil))
		}
		return events, nil, nil
	}})
	if err != nil {
		return err
	}
	live.AllowedMounts, live.HostFolders, live.OOMTexts, live.Bounds = slices.Clone(live.AllowedMounts), slices.Clone(live.HostFolders), slices.Clone(live.OOMTexts), bounds
	if live.Output != nil {
		r.Logs.SetLimits(*live.Output)
	}
	r.set.Store(&live)
	r.authz.Forget()
	return nil
}
