package query

import (
	"cmp"
	"slices"
	"time"

	"carma/mapper/model"
	"carma/mapper/predict"
	"carma/mapper/words"
	"carma/runner/api"
	"carma/runner/deviceaccess"
	"carma/runner/energy"
	"carma/runner/gpu"
	"carma/runner/label"
	"carma/runner/machine"
	"carma/runner/record"
)

// View returns a record as its owner sees it.
func (r *Tasks) View(rec *record.Record, in InState) api.Task {
	t := &rec.Task
	v := api.Task{
		ID: int64(t.ID), Name: rec.Name, User: rec.User, UID: rec.UID, GID: rec.GID, Group: rec.Group,
		Image: rec.Submit.Source(), Submit: rec.Submit, EnvHidden: rec.Hidden, GPUCount: t.GPUs, Phase: string(t.Phase), Priority: t.Priority.String(),
		Position: in.Position, Waits: in.waits, WaitsCode: string(in.code),
		Estimate: record.EstimateView(t.Estimate, record.EstimateDetail(t.Estimate, rec.Detail, rec.Submit.Exclusive)),
		Need:     int64(t.NextGrant), Alone: t.NextExclusive, Submitted: t.Submitted.Time(), Ended: t.Ended.TimeOrZero(), Reason: words.Reason(t.Reason), ReasonCode: string(t.Reason.Code),
	}
	for i := range t.Attempts {
		at := r.viewAttempt(t.ID, &t.Attempts[i])
		at.EnergyJ = r.energyOf(rec, at.N)
		rec.ViewEnd(&at)
		at.Untouched = at.Peak == 0 && slices.Contains(rec.Untouched, at.N)
		at.Suspended = suspendedFor(t, &t.Attempts[i], r.c.Clock.Now())
		v.EnergyJ = energy.Hundredths(v.EnergyJ + at.EnergyJ)
		v.Attempts = append(v.Attempts, at)
	}
	v.Params, v.Trainable = paramsOf(rec)
	v.Takes, v.Says = takesView(rec), rec.Says
	if a := t.Current(); a != nil {
		v.Ports, _ = r.c.Ports.Of(gpu.AttemptKey{Task: t.ID, Attempt: a.N})
	}
	if in.runs && t.Current() != nil {
		r.viewProgress(&v, t, in.going)
	} else if t.Phase == model.Suspended {
		r.viewProgress(&v, t, predict.SpeedView{})
		v.Progress.ETA, v.Progress.ETABasis, v.Progress.Rate, v.Progress.RateError = time.Time{}, "", 0, 0 // the task makes no progress
	}
	v.Idle, v.Suspension = viewIdle(t), r.suspensionView(t)
	if t.Phase == model.Estimating {
		v.Waits = cmp.Or(v.Waits, r.c.Probing(t.ID))
	}
	if last := t.Last(); last != nil {
		v.Started = last.Started.TimeOrZero()
		if t.Phase.Finished() {
			code := t.Code
			v.ExitCode = &code
		}
	}
	return v
}

func (r *Tasks) viewAttempt(id model.TaskID, a *model.Attempt) api.Attempt {
	v := api.Attempt{
		N: a.N, Starts: a.Starts, Container: label.ContainerName(r.c.Instance, id, a.N), Launched: a.Launched.Time(),
		Started: a.Started.TimeOrZero(), Ended: a.Ended.TimeOrZero(), Outcome: string(a.Class), ExitCode: a.Code,
		Peak: int64(a.Peak), Blameless: a.NotAtFault, Message: a.Message,
		Reason: words.Reason(a.Reason), ReasonCode: string(a.Reason.Code), Host: machine.ViewShare(a), Leaves: a.Leaves,
	}
	for _, g := range a.Grants {
		v.GPUs = append(v.GPUs, r.c.GPUs.Ref(g.GPU))
		v.Grant = max(v.Grant, int64(g.Memory))
	}
	if a.Devices != nil {
		v.Devices = deviceaccess.Text(a.Devices, r.c.GPUs.Text)
	}
	return v
}

// energyOf returns the joules that an attempt has used, or 0 if none or unknown.
func (r *Tasks) energyOf(rec *record.Record, attempt int) float64 {
	if joules, ended := rec.Energy[attempt]; ended {
		return joules
	}
	return energy.Hundredths(r.c.Energy.Joules(gpu.AttemptKey{Task: rec.ID(), Attempt: attempt}))
}

// takesView returns the recognised program of a task.
func takesView(rec *record.Record) *api.Takes {
	f := rec.Takes
	if f == nil {
		return nil
	}
	v := &api.Takes{Program: f.Name, By: f.By, Share: f.Share, From: f.From, Note: f.Note}
	if rec.Submit.Mem > 0 {
		v.Sets = f.Sets()
	}
	return v
}

// viewIdle returns the API form of a task's idleness, or nil if the task is active or has
// not been idle for long enough to report.
func viewIdle(t *model.Task) *api.Idle {
	if t.Phase != model.Running || t.Idle.Since == 0 || !t.Idle.Told && t.Idle.Ends == 0 {
		return nil
	}
	return &api.Idle{Since: t.Idle.Since.Time(), Ends: t.Idle.Ends.TimeOrZero(), Unused: t.Idle.Unused}
}
