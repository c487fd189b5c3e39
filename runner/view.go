package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"carma/mapper/units"

	"carma/mapper"
	"carma/mapper/words"
	"carma/runner/api"
	"carma/runner/journal"
)

// Find returns a task's record by number or name: the newest of that name.
func (r *Runner) Find(ref string) (*Record, error) {
	if rec := r.book.find(ref); rec != nil {
		return rec, nil
	}
	var row journal.TaskRow
	id, err := strconv.ParseInt(ref, 10, 64)
	if err == nil {
		row, err = r.Journal.Task(id)
	} else {
		row, err = r.Journal.TaskByName(ref)
	}
	if errors.Is(err, journal.ErrNotFound) && r.book.openGroup(ref) {
		return nil, refusef(404, "no task %s, but a group of tasks; name one of them, or use --group %s where there is one", ref, ref)
	}
	if errors.Is(err, journal.ErrNotFound) {
		return nil, refusef(404, "no task %s; `carma ps -a` lists all", ref)
	}
	if err != nil {
		return nil, err
	}
	return recordOf(row)
}

// queueView is the part of a waiting task that only the state knows.
type queueView struct {
	position int
	waits    string
	code     mapper.ReasonCode
}

// Task returns a task as users see it.
func (r *Runner) Task(ctx context.Context, ref string) (api.Task, error) {
	rec, err := r.Find(ref)
	if err != nil {
		return api.Task{}, err
	}
	views, err := r.queueViews(ctx, []*Record{rec})
	if err != nil {
		return api.Task{}, err
	}
	return r.withCurves(rec, r.view(r.shown(ctx, rec), views[rec.ID()])), nil
}

// withCurves adds the memory that the attempts were seen to use.
func (r *Runner) withCurves(rec *Record, v api.Task) api.Task {
	for i := range v.Attempts {
		at := &v.Attempts[i]
		c := rec.Curves[at.N]
		if c == nil {
			_, c = r.monitor.sighting(rec.ID(), at.N)
		}
		at.Curve = c.view()
	}
	return v
}

// queueViews asks the state about the waiting ones of some records.
func (r *Runner) queueViews(ctx context.Context, recs []*Record) (map[mapper.TaskID]queueView, error) {
	var waiting []mapper.TaskID
	for _, rec := range recs {
		if p := rec.Task.Phase; p == mapper.Queued || p == mapper.Recovering || p == mapper.Held || p == mapper.Estimating {
			waiting = append(waiting, rec.ID())
		}
	}
	views := map[mapper.TaskID]queueView{}
	if len(waiting) == 0 {
		return views, nil
	}
	slices.Sort(waiting)
	err := r.look(ctx, func(s *mapper.State) {
		explained := 0
		for _, id := range waiting {
			v := queueView{position: s.Position(id)}
			if explained < explainAtMost || v.position == 0 { // one that is held costs nothing
				if x := r.explained.of(s, id, time.Now()); x.known {
					v.waits, v.code = x.text, x.code
				}
				explained++
			}
			views[id] = v
		}
	})
	return views, err
}

// Tasks lists tasks, newest first.
func (r *Runner) Tasks(ctx context.Context, o api.ListOptions) ([]api.Task, error) {
	list, _, err := r.page(ctx, o)
	return list, err
}

// page is one page of a listing, and where the next one begins; 0: there is none.
func (r *Runner) page(ctx context.Context, o api.ListOptions) (list []api.Task, next int64, err error) {
	recs, more, err := r.records(o)
	if err != nil {
		return nil, 0, err
	}
	recs, next = page(recs, pageLimit(o))
	next = cmp.Or(next, more)
	list, err = r.views(ctx, recs)
	return list, next, err
}

// views are records as users see them in a listing.
func (r *Runner) views(ctx context.Context, recs []*Record) ([]api.Task, error) {
	views, err := r.queueViews(ctx, recs)
	if err != nil {
		return nil, err
	}
	out := make([]api.Task, len(recs))
	for i, rec := range recs {
		out[i] = r.view(r.shown(ctx, rec), views[rec.ID()])
	}
	return out, nil
}

// records are the newest that are asked for, and one more where there are more
// than a page holds. more, if not 0, is the lowest number that was looked at:
// there may be others below it.
func (r *Runner) records(o api.ListOptions) (recs []*Record, more int64, err error) {
	asked := func(rec *Record) bool {
		return (o.All || !rec.Task.Phase.Finished()) && (o.User == "" || rec.User == o.User) && (o.Group == "" || rec.Group == o.Group) && hasLabel(rec, o.Label)
	}
	before := mapper.TaskID(o.Before)
	if !o.All || !r.book.hasForgotten() {
		return r.book.newest(before, pageLimit(o)+1, asked), 0, nil
	}
	recs = r.book.newest(before, math.MaxInt, asked)
	limit := pageLimit(o)
	rows, err := r.Journal.Tasks(journal.Filter{User: o.User, Group: o.Group, Before: o.Before, Limit: limit, Bytes: pageBytes})
	if err != nil {
		return nil, 0, err
	}
	bytes := 0
	have := map[mapper.TaskID]bool{}
	for _, rec := range recs {
		have[rec.ID()] = true
	}
	for _, row := range rows {
		bytes += len(row.Body)
		rec, err := recordOf(row)
		if err != nil {
			return nil, 0, err
		}
		if !have[rec.ID()] && asked(rec) {
			recs = append(recs, rec)
		}
	}
	if len(rows) > 0 && (len(rows) == limit || bytes >= pageBytes) {
		more = rows[len(rows)-1].ID
	}
	recs = slices.DeleteFunc(recs, func(rec *Record) bool { return int64(rec.ID()) < more })
	slices.SortFunc(recs, func(a, b *Record) int { return cmp.Compare(b.ID(), a.ID()) })
	return recs, more, nil
}

// view is a record as users see it.
func (r *Runner) view(rec *Record, q queueView) api.Task {
	t := &rec.Task
	v := api.Task{
		ID: int64(t.ID), Name: rec.Name, User: rec.User, UID: rec.UID, GID: rec.GID, Group: rec.Group,
		Image: rec.Submit.Image, Submit: rec.Submit, GPUCount: t.GPUs, Phase: string(t.Phase),
		Position: q.position, Waits: q.waits, WaitsCode: string(q.code),
		Estimate: api.Estimate{Memory: int64(t.Estimate.Memory), WholeGPU: t.Estimate.WholeGPU, Method: string(t.Estimate.Method), Detail: estimateDetail(t.Estimate, rec.Detail)},
		Need:     int64(t.Need), Alone: t.Alone, Submitted: t.Submitted.Time(), Ended: instant(t.Ended), Reason: words.Reason(t.Reason), ReasonCode: string(t.Reason.Code),
	}
	for i := range t.Attempts {
		v.Attempts = append(v.Attempts, r.viewAttempt(t.ID, &t.Attempts[i]))
	}
	if t.Phase == mapper.Estimating {
		v.Waits = cmp.Or(v.Waits, r.probing(t.ID))
	}
	if last := t.Last(); last != nil {
		v.Started = instant(last.Started)
		if t.Phase.Finished() {
			code := t.Code
			v.ExitCode = &code
		}
	}
	return v
}

func (r *Runner) viewAttempt(id mapper.TaskID, a *mapper.Attempt) api.Attempt {
	v := api.Attempt{
		N: a.N, Starts: a.Starts, Container: r.containerName(id, a.N), Launched: a.Launched.Time(),
		Started: instant(a.Started), Ended: instant(a.Ended), Outcome: string(a.Class), ExitCode: a.Code,
		Peak: int64(a.Peak), Blameless: a.Blameless, Message: a.Message,
		Reason: words.Reason(a.Reason), ReasonCode: string(a.Reason.Code),
	}
	for _, g := range a.Grants {
		v.GPUs = append(v.GPUs, r.gpuRef(g.GPU))
		v.Grant = max(v.Grant, int64(g.Memory))
	}
	return v
}

func (r *Runner) gpuRef(id mapper.GPUID) api.GPURef {
	ref := api.GPURef{UUID: string(id), Index: -1}
	if d, ok := r.devices[id]; ok {
		ref.Index = d.Index
	}
	return ref
}

func (r *Runner) capacity(id mapper.GPUID) units.Bytes { return r.devices[id].Capacity }

// instant is a time for people; the zero instant is no time.
func instant(t units.Instant) time.Time {
	if t == 0 {
		return time.Time{}
	}
	return t.Time()
}

func hasLabel(rec *Record, want string) bool {
	if want == "" {
		return true
	}
	k, v, withValue := cutLabel(want)
	got, ok := rec.Submit.Labels[k]
	return ok && (!withValue || got == v)
}

func cutLabel(s string) (key, value string, withValue bool) {
	for i := range len(s) {
		if s[i] == '=' {
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}

// Info describes the daemon.
func (r *Runner) Info(ctx context.Context) (api.Info, error) {
	info := api.Info{
		Output:  r.outputView(),
		Version: r.opt.Version, Now: r.Clock.Time(), Speed: r.Clock.Speed(), PID: pid, DataDir: r.opt.DataDir,
		Driver: r.Driver.Name(), Source: r.GPUs.Name(), Simulated: r.opt.SetSpeed != nil, Engine: r.engine.version(),
	}
	_, info.EngineDown = r.engine.status()
	err := r.look(ctx, func(s *mapper.State) {
		info.Policy, info.Queued = s.Options().Policy, s.QueueLen()
		info.Running = s.Placed()
		info.Held = s.Unfinished() - info.Queued - info.Running
	})
	info.Trouble, _ = r.trouble.now() // as the loop has left it
	info.Draining = r.draining.Load()
	return info, err
}

// estimateDetail says where an estimate comes from: asked is what the
// estimator said at submission, which earlier runs may have overruled since.
func estimateDetail(e mapper.Estimate, asked string) string {
	switch {
	case e.Method != mapper.FromHistory:
		return asked
	case e.WholeGPU:
		return "earlier runs of the same image and command used more than tasks that share can have, so it gets whole GPUs; when it was submitted: " + asked
	}
	return fmt.Sprintf("%s booked, a little above what earlier runs of the same image and command used; when it was submitted: %s", e.Memory, asked)
}
