package runner

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/journal"
	"carma/runner/loop"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/rights"
)

// conditions maps the name in a request to the kind of dependency on a task.
var conditions = map[string]model.Condition{"": model.AfterOK, "ok": model.AfterOK, "any": model.AfterAny, "started": model.AfterStarted}

// after returns the unmet dependencies of a new task. It refuses the submission if a
// dependency can never be met.
func (p *batchPlan) after(sub api.Submit, id model.TaskID) ([]model.Dependency, error) {
	var all []model.Dependency
	add := func(of model.TaskID, c model.Condition) {
		if d := (model.Dependency{Task: of, Condition: c}); !slices.Contains(all, d) {
			all = append(all, d)
		}
	}
	for _, d := range sub.After {
		c := conditions[d.Condition]
		if d.Part != "" {
			ids := p.parts[d.Part]
			if d.Part == sub.Part || len(ids) == 0 {
				return nil, request.Errorf(422, "--after: no part %s comes before task %d in this submission", d.Part, id)
			}
			all = slices.Grow(all, len(ids))
			for _, of := range ids {
				all = append(all, model.Dependency{Task: of, Condition: c})
			}
			continue
		}
		recs, err := p.referred(d.Task)
		if err != nil {
			return nil, err
		}
		for _, rec := range recs {
			if _, open := p.loop.State().Task(rec.ID()); open {
				add(rec.ID(), c)
				continue
			}
			if err := p.past(rec, d.Task, c); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// past checks a task that has ended against a condition on it.
func (p *batchPlan) past(rec *record.Record, ref string, c model.Condition) error {
	if !rec.Task.Phase.Finished() { // the task's end is not in the journal yet
		if err := p.loop.Flush(); err != nil {
			return err
		}
		again, err := p.Find(rec.ID().String())
		if err != nil {
			return err
		}
		rec = again
	}
	t := &rec.Task
	started := slices.ContainsFunc(t.Attempts, func(a model.Attempt) bool { return a.Started > 0 })
	if c.Follows(t.Phase, started) {
		return nil
	}
	return request.Errorf(422, "--after %s: task %d %s, so nothing would ever run; --after %s:any waits for its end only", ref, rec.ID(), strings.TrimPrefix(endings[t.Phase], "it "), ref)
}

// referred returns the tasks that a number or a name refers to: one task, or all tasks of a
// group.
func (r *Runner) referred(ref string) ([]*record.Record, error) {
	rec, err := r.Find(ref)
	if err == nil {
		return []*record.Record{rec}, nil
	}
	if !request.IsNotFound(err) {
		return nil, err
	}
	recs, err := r.group(ref)
	if request.IsNotFound(err) {
		return nil, request.Errorf(422, "--after: no task and no group %s; `carma ps -a` lists all", ref)
	}
	return recs, err
}

// newestOf returns a task of the newest group of a name.
func (r *Runner) newestOf(name string) (*record.Record, error) {
	rows, err := r.Journal.Tasks(journal.Filter{Group: name, Limit: 1})
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, request.Errorf(404, "no group %s; `carma ps -a` lists all tasks", name)
	}
	return record.Decode(rows[0])
}

// group returns the tasks of the newest group of a name, in order of number.
func (r *Runner) group(name string) (recs []*record.Record, err error) {
	for after := int64(0); ; {
		some, next, err := r.groupPage(name, after, pageTasks)
		if err != nil {
			return nil, err
		}
		recs = append(recs, some...)
		if after = next; next == 0 {
			return recs, nil
		}
	}
}

// groupPage returns tasks of the newest group of a name, with numbers above after, in order
// of number. next is the number to ask with for the following tasks, or 0 if there are
// none.
func (r *Runner) groupPage(name string, after int64, limit int) (recs []*record.Record, next int64, err error) {
	newest, err := r.newestOf(name)
	if err != nil {
		return nil, 0, err
	}
	rows, err := r.Journal.Tasks(journal.Filter{Group: name, From: max(after+1, int64(newest.GroupID)), Limit: limit, Bytes: pageBytes})
	if err != nil {
		return nil, 0, err
	}
	bytes := 0
	for _, row := range rows {
		bytes += len(row.Body)
		rec := r.records.Find(strconv.FormatInt(row.ID, 10))
		if rec == nil {
			if rec, err = record.Decode(row); err != nil {
				return nil, 0, err
			}
		}
		recs = append(recs, rec)
	}
	if len(rows) == limit || bytes >= pageBytes {
		next = rows[len(rows)-1].ID
	}
	return recs, next, nil
}

// Group lists one page of the tasks of the newest group of a name, in order of
// number; see [Runner.groupPage].
func (r *Runner) Group(ctx context.Context, name string, o api.ListOptions) ([]api.Task, int64, error) {
	recs, next, err := r.groupPage(name, o.After, pageLimit(o))
	if err != nil {
		return nil, 0, err
	}
	filter := r.authz.Filter(ctx)
	recs = slices.DeleteFunc(recs, func(rec *record.Record) bool { return !filter.Shows(rec) })
	if filter.Err() != nil {
		return nil, 0, filter.Err()
	}
	list, err := r.views(ctx, recs)
	return list, next, err
}

// StopGroup cancels the unfinished tasks of the newest group of a name, and
// returns their numbers in order.
func (r *Runner) StopGroup(ctx context.Context, who request.Caller, name string, s api.StopRequest) (api.Stopped, error) {
	newest, err := r.newestOf(name)
	if err != nil {
		return api.Stopped{}, err
	}
	if err := r.authz.AuthorizeGroup(who, rights.Stop, newest, s.Reason); err != nil {
		return api.Stopped{}, err
	}
	answer := api.Stopped{Group: name, Tasks: []int64{}}
	reason := cmp.Or(s.Reason, "stopped by "+who.Name)
	err = r.loop.Do(ctx, &loop.Change{Fresh: true, Events: func(now units.Instant) ([]model.Event, []*record.Record, error) {
		var open []*model.Task
		for _, rec := range r.records.All() {
			if t, ok := r.loop.State().Task(rec.ID()); ok && rec.Group == name && rec.GroupID == newest.GroupID {
				open = append(open, t)
			}
		}
		slices.SortFunc(open, lastFirst)
		var events []model.Event
		var orders []*record.Record
		for _, t := range open {
			answer.Tasks = append(answer.Tasks, int64(t.ID))
			if ev, rec := r.cancel(now, t.ID, s, reason); ev != nil {
				events, orders = append(events, *ev), append(orders, rec)
			}
		}
		return events, orders, nil
	}})
	slices.Sort(answer.Tasks)
	return answer, err
}

// lastFirst compares two tasks by the order in which the tasks of a group are stopped.
// Placed tasks come last, else a pending task would get the place of a stopped one. Among
// the others, dependent tasks come before the tasks that they depend on.
func lastFirst(a, b *model.Task) int {
	rank := func(t *model.Task) int {
		switch {
		case t.Phase.Placed():
			return 2
		case t.Phase == model.Queued || t.Phase == model.Recovering || t.Phase == model.Suspended:
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.ID, a.ID))
}
