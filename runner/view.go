package runner

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"carma/mapper"
	"carma/mapper/model"
	"carma/mapper/predict"
	"carma/mapper/words"
	"carma/runner/api"
	"carma/runner/control"
	"carma/runner/deviceaccess"
	"carma/runner/energy"
	"carma/runner/gpu"
	"carma/runner/label"
	"carma/runner/machine"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/rights"
	"carma/runner/waitreason"
)

// queueView holds the data of a task that only the state has: the place and the reason of
// a pending task, or the speed of a running one.
type queueView struct {
	position int
	waits    string
	code     model.ReasonCode
	going    predict.SpeedView
	runs     bool
}

// Task returns the parts of a task that the caller may see. The values of its environment are
// shown or hidden as in a listing.
func (r *Runner) Task(ctx context.Context, ref string) (api.Task, error) {
	return r.taskAs(ctx, ref, rights.ListEnvironment)
}

// Inspect returns a task, with the values of its environment if the caller may see them.
func (r *Runner) Inspect(ctx context.Context, ref string) (api.Task, error) {
	rec, err := r.find.Find(ref)
	if err != nil {
		return api.Task{}, err
	}
	if who, ok := request.CallerFrom(ctx); ok && len(rec.Submit.Env) > 0 && r.authz.May(ctx, rights.Environment, rec) {
		if err := r.authz.Authorize(who, rights.Environment, rec, ""); err != nil {
			return api.Task{}, err
		}
	}
	return r.taskAs(ctx, rec.ID().String(), rights.Environment)
}

func (r *Runner) taskAs(ctx context.Context, ref string, environment rights.Action) (api.Task, error) {
	rec, err := r.find.Find(ref)
	if err != nil {
		return api.Task{}, err
	}
	views, err := r.queueViews(ctx, []*record.Record{rec})
	if err != nil {
		return api.Task{}, err
	}
	v := r.withCurves(rec, r.present(ctx, rec, views[rec.ID()], environment))
	v.Undelivered = r.undelivered(ctx, rec)
	return v, nil
}

// queueViews asks the state about the unfinished ones of some records.
func (r *Runner) queueViews(ctx context.Context, recs []*record.Record) (map[model.TaskID]queueView, error) {
	var waiting, placed []model.TaskID
	for _, rec := range recs {
		switch p := rec.Task.Phase; {
		case p.Waits():
			waiting = append(waiting, rec.ID())
		case p.Placed() && p != model.Launching:
			placed = append(placed, rec.ID())
		}
	}
	views := map[model.TaskID]queueView{}
	if len(waiting)+len(placed) == 0 {
		return views, nil
	}
	slices.Sort(waiting)
	err := r.loop.Look(ctx, func(s *mapper.State) {
		for _, id := range placed {
			going, runs := s.Speed(id)
			views[id] = queueView{going: going, runs: runs}
		}
		explained := 0
		for _, id := range waiting {
			v := queueView{position: s.Position(id)}
			if explained < waitreason.AtMost || v.position == 0 { // the reason of a held task costs nothing
				if x := r.explained.Of(s, id, time.Now()); x.Known {
					v.waits, v.code = x.Text, x.Code
				}
				explained++
			}
			views[id] = v
		}
	})
	return views, err
}

// view returns a record as users see it.
func (r *Runner) view(rec *record.Record, q queueView) api.Task {
	t := &rec.Task
	v := api.Task{
		ID: int64(t.ID), Name: rec.Name, User: rec.User, UID: rec.UID, GID: rec.GID, Group: rec.Group,
		Image: rec.Submit.Source(), Submit: rec.Submit, EnvHidden: rec.Hidden, GPUCount: t.GPUs, Phase: string(t.Phase), Priority: t.Priority.String(),
		Position: q.position, Waits: q.waits, WaitsCode: string(q.code),
		Estimate: estimateView(t.Estimate, estimateDetail(t.Estimate, rec.Detail, rec.Submit.Exclusive)),
		Need:     int64(t.NextGrant), Alone: t.NextExclusive, Submitted: t.Submitted.Time(), Ended: t.Ended.TimeOrZero(), Reason: words.Reason(t.Reason), ReasonCode: string(t.Reason.Code),
	}
	for i := range t.Attempts {
		at := r.viewAttempt(t.ID, &t.Attempts[i])
		at.EnergyJ = r.energyOf(rec, at.N)
		rec.ViewEnd(&at)
		at.Untouched = at.Peak == 0 && slices.Contains(rec.Untouched, at.N)
		at.Suspended = suspendedFor(t, &t.Attempts[i], r.Clock.Now())
		v.EnergyJ = energy.Hundredths(v.EnergyJ + at.EnergyJ)
		v.Attempts = append(v.Attempts, at)
	}
	v.Params, v.Trainable = paramsOf(rec)
	v.Takes, v.Says = takesView(rec), rec.Says
	if a := t.Current(); a != nil {
		v.Ports, _ = r.ports.Of(gpu.AttemptKey{Task: t.ID, Attempt: a.N})
	}
	if q.runs && t.Current() != nil {
		r.viewProgress(&v, t, q.going)
	} else if t.Phase == model.Suspended {
		r.viewProgress(&v, t, predict.SpeedView{})
		v.Progress.ETA, v.Progress.ETABasis, v.Progress.Rate, v.Progress.RateError = time.Time{}, "", 0, 0 // the task makes no progress
	}
	v.Idle, v.Suspension = viewIdle(t), r.suspensionView(t)
	if t.Phase == model.Estimating {
		v.Waits = cmp.Or(v.Waits, r.probing(t.ID))
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

func (r *Runner) viewAttempt(id model.TaskID, a *model.Attempt) api.Attempt {
	v := api.Attempt{
		N: a.N, Starts: a.Starts, Container: label.ContainerName(r.instance, id, a.N), Launched: a.Launched.Time(),
		Started: a.Started.TimeOrZero(), Ended: a.Ended.TimeOrZero(), Outcome: string(a.Class), ExitCode: a.Code,
		Peak: int64(a.Peak), Blameless: a.NotAtFault, Message: a.Message,
		Reason: words.Reason(a.Reason), ReasonCode: string(a.Reason.Code), Host: machine.ViewShare(a), Leaves: a.Leaves,
	}
	for _, g := range a.Grants {
		v.GPUs = append(v.GPUs, r.gpus.Ref(g.GPU))
		v.Grant = max(v.Grant, int64(g.Memory))
	}
	if a.Devices != nil {
		v.Devices = deviceaccess.Text(a.Devices, r.gpus.Text)
	}
	return v
}

// Info describes the daemon.
func (r *Runner) Info(ctx context.Context) (api.Info, error) {
	info := api.Info{
		Output: r.keeping.View(), KeepTasks: r.live().Keep.Tasks, KeepTasksFor: r.live().Keep.TasksFor,
		Version: r.opt.Version, Now: r.Clock.Time(), Speed: r.Clock.Speed(), PID: pid, DataDir: r.opt.DataDir,
		Driver: r.Driver.Name(), Source: r.GPUs.Name(), Simulated: r.opt.SetSpeed != nil, Engine: r.engine.Version(),
	}
	_, info.EngineDown = r.engine.Status()
	err := r.loop.Look(ctx, func(s *mapper.State) {
		info.Policy, info.Queued = s.Options().Policy, s.QueueLen()
		info.Running, info.Paused = s.Placed(), control.CordonView(s.Paused())
		all, waiting := s.Suspended()
		info.Suspended, info.Queued = len(all), info.Queued-waiting
		info.Held = s.Unfinished() - info.Queued - info.Running - info.Suspended
	})
	info.Energy = r.energy.View()
	info.Trouble, _ = r.trouble.Now() // as the loop last wrote it
	info.Draining = r.draining.Load()
	if err == nil {
		info.Host, err = r.hostView(ctx)
	}
	if err != nil {
		return info, err
	}
	return r.authz.Info(ctx, info, r.records)
}

// estimateView returns an estimate as users see it.
func estimateView(e model.Estimate, detail string) api.Estimate {
	return api.Estimate{
		Memory: int64(e.Memory), Point: int64(e.Point), Plain: int64(e.Plain.Point), WholeGPU: e.WholeGPU, Method: string(e.Method), Detail: detail,
	}
}

// estimateDetail says where an estimate comes from. asked is the estimator's sentence at
// submission. Earlier runs may have overruled it since. exclusive is set if the task
// requested exclusive GPUs, so that words about sharing are left out.
func estimateDetail(e model.Estimate, asked string, exclusive bool) string {
	if found, _, shares := strings.Cut(asked, "; --mem"); shares && exclusive {
		asked = found + "; it asked for its GPUs alone"
	}
	switch {
	case e.Method != model.FromHistory:
		return asked
	case e.WholeGPU:
		return "earlier runs of the same image and command used more than tasks that share can have, so it gets whole GPUs; when it was submitted: " + asked
	}
	return fmt.Sprintf("%s booked, a little above what earlier runs of the same image and command used; when it was submitted: %s", e.Memory, asked)
}

// present returns a task as the caller may see it. environment is the right to see the
// values of its environment in this answer.
func (r *Runner) present(ctx context.Context, rec *record.Record, q queueView, environment rights.Action) api.Task {
	v := r.view(r.authz.Shown(ctx, rec, environment), q)
	if !r.authz.May(ctx, rights.Progress, rec) {
		v.Progress, v.Params, v.Trainable = withoutOutput(v.Progress), 0, 0
	}
	return v
}
