package runner

import (
	"cmp"
	"context"
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
func (r *Runner) Stop(ctx context.Context, who request.Caller, ref string, s api.StopRequest) (*record.Record, error) {
	rec, err := r.Find(ref)
	if err != nil {
		return nil, err
	}
	if err := r.authz.Authorize(who, rights.Stop, rec, s.Reason); err != nil {
		return nil, err
	}
	reason := cmp.Or(s.Reason, "stopped by "+who.Name)
	err = r.loop.Do(ctx, &loop.Change{Fresh: true, Vital: true, Events: func(now units.Instant) ([]model.Event, []*record.Record, error) {
		ev, rec := r.cancel(now, rec.ID(), s, reason)
		if ev == nil {
			return nil, nil, nil // the task has ended meanwhile, or the request changes nothing
		}
		return []model.Event{*ev}, []*record.Record{rec}, nil
	}})
	if err != nil {
		return nil, err
	}
	failpoint.Hit("stop-stored")
	return r.Find(ref)
}

// cancel returns the event that stops a task, with its record. If the task is stopping
// already, the new grace counts only if it is shorter. It returns nil if there is nothing
// to do. Only the loop calls it.
func (r *Runner) cancel(now units.Instant, id model.TaskID, s api.StopRequest, reason string) (*model.Cancel, *record.Record) {
	t, open := r.loop.State().Task(id)
	rec, _ := r.records.Get(id)
	if !open || rec == nil {
		return nil, nil
	}
	order := record.StopOrder{At: time.Now(), Grace: cmp.Or(s.Grace, r.grace(rec))}
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
