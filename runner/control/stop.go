package control

import (
	"cmp"
	"context"
	"slices"
	"time"

	"carma/internal/failpoint"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/api"
	"carma/runner/loop"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/rights"
)

// Stop asks a task to end. It returns when the request is durable; the task may still
// run.
func (c *Controller) Stop(ctx context.Context, who request.Caller, ref string, s api.StopRequest) (*record.Record, error) {
	rec, err := c.find.Find(ref)
	if err != nil {
		return nil, err
	}
	if err := c.authz.Authorize(who, rights.Stop, rec, s.Reason); err != nil {
		return nil, err
	}
	reason := cmp.Or(s.Reason, "stopped by "+who.Name)
	err = c.loop.Do(ctx, &loop.Change{Fresh: true, Vital: true, Events: func(now units.Instant) ([]model.Event, []*record.Record, error) {
		ev, rec := c.cancel(now, rec.ID(), s, reason)
		if ev == nil {
			return nil, nil, nil // the task has ended meanwhile, or the request changes nothing
		}
		return []model.Event{*ev}, []*record.Record{rec}, nil
	}})
	if err != nil {
		return nil, err
	}
	failpoint.Hit("stop-stored")
	return c.find.Find(ref)
}

// cancel returns the event that stops a task, with its record. If the task is stopping
// already, the new grace counts only if it is shorter. It returns nil if there is nothing
// to do. Only the loop calls it.
func (c *Controller) cancel(now units.Instant, id model.TaskID, s api.StopRequest, reason string) (*model.Cancel, *record.Record) {
	t, open := c.loop.State().Task(id)
	rec, _ := c.find.Records.Get(id)
	if !open || rec == nil {
		return nil, nil
	}
	order := record.StopOrder{At: time.Now(), Grace: cmp.Or(s.Grace, c.grace(rec))}
	if s.Now {
		order.Grace = 0
	}
	if earlier := rec.Stop; earlier != nil && earlier.Left(order.At) <= order.Grace {
		if t.Phase == model.Stopping {
			return nil, nil
		}
		order = *earlier // the grace can only get shorter
	}
	return &model.Cancel{At: now, Task: id, Reason: reason}, rec.WithStop(order)
}

// StopGroup cancels the unfinished tasks of the newest group of a name, and
// returns their numbers in order.
func (c *Controller) StopGroup(ctx context.Context, who request.Caller, name string, s api.StopRequest) (api.Stopped, error) {
	newest, err := c.find.NewestOf(name)
	if err != nil {
		return api.Stopped{}, err
	}
	if err := c.authz.AuthorizeGroup(who, rights.Stop, newest, s.Reason); err != nil {
		return api.Stopped{}, err
	}
	answer := api.Stopped{Group: name, Tasks: []int64{}}
	reason := cmp.Or(s.Reason, "stopped by "+who.Name)
	err = c.loop.Do(ctx, &loop.Change{Fresh: true, Events: func(now units.Instant) ([]model.Event, []*record.Record, error) {
		var open []*model.Task
		for _, rec := range c.find.Records.All() {
			if t, ok := c.loop.State().Task(rec.ID()); ok && rec.Group == name && rec.GroupID == newest.GroupID {
				open = append(open, t)
			}
		}
		slices.SortFunc(open, lastFirst)
		var events []model.Event
		var orders []*record.Record
		for _, t := range open {
			answer.Tasks = append(answer.Tasks, int64(t.ID))
			if ev, rec := c.cancel(now, t.ID, s, reason); ev != nil {
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
