package control

import (
	"context"
	"time"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/access"
	"carma/runner/api"
	"carma/runner/inventory"
	"carma/runner/loop"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/rights"
	"carma/runner/tasklog"
)

// NextPod is the hold reason of a task whose Job decides whether it runs again.
const NextPod = "its Job makes the next pod, if it does"

// Controller changes tasks, GPUs and reservations for users who may do so.
type Controller struct {
	loop         *loop.Loop
	find         *record.Finder
	authz        *access.Authorizer
	gpus         *inventory.GPUs
	logs         *tasklog.Store
	reread       func()
	grace        func(*record.Record) time.Duration
	noSuspending string
}

// Config holds the parts that a Controller works with.
type Config struct {
	Loop  *loop.Loop
	Find  *record.Finder
	Authz *access.Authorizer
	GPUs  *inventory.GPUs
	Logs  *tasklog.Store
	// Reread has the GPUs read again now.
	Reread func()
	// Grace returns the time that a task gets between the stop signal and the kill.
	Grace func(*record.Record) time.Duration
	// NoSuspending says why tasks cannot be suspended here, or is empty.
	NoSuspending string
}

// New returns a controller.
func New(c Config) *Controller {
	return &Controller{loop: c.Loop, find: c.Find, authz: c.Authz, gpus: c.GPUs, logs: c.Logs, reread: c.Reread, grace: c.Grace, noSuspending: c.NoSuspending}
}

// alter changes one task that has not ended, if who may do so. why is the user's comment.
// plan returns the event and the record, or the refusal; only the loop calls it, with the
// task's state and record at that time. The change is durable when alter returns.
func (c *Controller) alter(ctx context.Context, who request.Caller, a rights.Action, ref, why string, plan func(now units.Instant, t *model.Task, rec *record.Record) (model.Event, *record.Record, error)) (*record.Record, error) {
	rec, err := c.find.Find(ref)
	if err != nil {
		return nil, err
	}
	if err := c.authz.Authorize(who, a, rec, why); err != nil {
		return nil, err
	}
	return c.Altered(ctx, rec.ID(), plan)
}

// Altered does what alter does, for a caller whose rights were checked.
func (c *Controller) Altered(ctx context.Context, id model.TaskID, plan func(now units.Instant, t *model.Task, rec *record.Record) (model.Event, *record.Record, error)) (*record.Record, error) {
	err := c.loop.Do(ctx, &loop.Change{Fresh: true, Vital: true, Events: func(now units.Instant) ([]model.Event, []*record.Record, error) {
		t, open := c.loop.State().Task(id)
		rec, _ := c.find.Records.Get(id)
		if !open || rec == nil {
			return nil, nil, request.Errorf(409, "task %d has ended; carma rerun %d runs it again", id, id)
		}
		ev, changed, err := plan(now, t, rec)
		if err != nil || ev == nil {
			return nil, nil, err
		}
		if changed == nil {
			return []model.Event{ev}, nil, nil
		}
		return []model.Event{ev}, []*record.Record{changed}, nil
	}})
	if err != nil {
		return nil, err
	}
	return c.find.Find(id.String())
}

// Hold keeps a pending task from being launched.
func (c *Controller) Hold(ctx context.Context, who request.Caller, ref string, n api.Note) (*record.Record, error) {
	return c.alter(ctx, who, rights.Hold, ref, n.Why, func(now units.Instant, t *model.Task, _ *record.Record) (model.Event, *record.Record, error) {
		switch {
		case t.Phase == model.Resuming:
			return nil, nil, request.Errorf(409, "task %d is resuming; carma suspend %d when it runs, then carma hold %d", t.ID, t.ID, t.ID)
		case t.StopReason.Code != "" && t.Phase == model.Suspended:
			return nil, nil, request.Errorf(409, "task %d is being stopped and does not come back", t.ID)
		case t.Phase.Placed() && t.Phase != model.Suspending:
			return nil, nil, request.Errorf(409, "task %d is %s; carma requeue --hold %d stops it and holds it", t.ID, t.Phase, t.ID)
		}
		return model.HoldChanged{At: now, Task: t.ID, Hold: true, By: who.Name, Why: n.Why}, nil, nil
	})
}

// Release releases a held task.
func (c *Controller) Release(ctx context.Context, who request.Caller, ref string) (*record.Record, error) {
	return c.alter(ctx, who, rights.Release, ref, "", func(now units.Instant, t *model.Task, rec *record.Record) (model.Event, *record.Record, error) {
		if t.Hold != nil && rec.Job != nil && t.Hold.Why == NextPod {
			return nil, nil, request.Errorf(409, "task %d waits for the next pod of its Job, and goes on by itself when there is one", t.ID)
		}
		if t.Hold == nil && t.Phase == model.Suspended && !t.Suspension.Automatic {
			return nil, nil, request.Errorf(409, "task %d is not held, it is suspended; carma resume %d lets it come back", t.ID, t.ID)
		}
		if t.Hold == nil {
			return nil, nil, request.Errorf(409, "task %d is not held by anybody: it is %s", t.ID, t.Phase)
		}
		return model.HoldChanged{At: now, Task: t.ID, By: who.Name}, nil, nil
	})
}

// Requeue stops a running or suspended task and puts it back into the queue.
func (c *Controller) Requeue(ctx context.Context, who request.Caller, ref string, q api.RequeueRequest) (*record.Record, error) {
	return c.alter(ctx, who, rights.Requeue, ref, q.Why, func(now units.Instant, t *model.Task, _ *record.Record) (model.Event, *record.Record, error) {
		if t.Alive() == nil || t.StopReason.Code != "" {
			return nil, nil, request.Errorf(409, "task %d does not run: it is %s", t.ID, t.Phase)
		}
		return model.RequeueRequested{At: now, Task: t.ID, By: who.Name, Why: q.Why, Hold: q.Hold}, nil, nil
	})
}

// Move changes the place of a pending task among its owner's pending tasks.
func (c *Controller) Move(ctx context.Context, who request.Caller, ref string, m api.MoveRequest) (*record.Record, error) {
	return c.alter(ctx, who, rights.Move, ref, "", func(now units.Instant, t *model.Task, _ *record.Record) (model.Event, *record.Record, error) {
		if t.Phase == model.Suspended && c.loop.State().Position(t.ID) == 0 {
			return nil, nil, request.Errorf(409, "task %d is suspended and in no queue; carma resume %d lets it come back", t.ID, t.ID)
		}
		if t.Phase != model.Queued && t.Phase != model.Recovering && t.Phase != model.Suspended {
			return nil, nil, request.Errorf(409, "task %d is in no queue: it is %s", t.ID, t.Phase)
		}
		return model.QueueMoved{At: now, Task: t.ID, Last: m.Last, By: who.Name}, nil, nil
	})
}
