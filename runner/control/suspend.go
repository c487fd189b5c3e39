package control

import (
	"context"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/mapper/words"
	"carma/runner/api"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/rights"
)

// Suspend suspends a running task.
func (c *Controller) Suspend(ctx context.Context, who request.Caller, ref string, n api.Note) (*record.Record, error) {
	return c.alter(ctx, who, rights.Suspend, ref, n.Why, func(now units.Instant, t *model.Task, _ *record.Record) (model.Event, *record.Record, error) {
		if err := c.maySuspend(t); err != nil {
			return nil, nil, err
		}
		return model.SuspendAsked{At: now, Task: t.ID, By: who.Name, Why: n.Why}, nil, nil
	})
}

// maySuspend refuses to suspend a task that cannot be suspended, and names alternatives.
func (c *Controller) maySuspend(t *model.Task) error {
	switch t.Phase {
	case model.Suspending, model.Suspended:
		return request.Errorf(409, "task %d is %s already; carma hold %d keeps it so until it is released", t.ID, t.Phase, t.ID)
	case model.Resuming, model.Launching:
		return request.Errorf(409, "task %d is %s; it can be suspended when it runs", t.ID, t.Phase)
	case model.Stopping:
		return request.Errorf(409, "task %d is stopping; it leaves its GPUs anyway", t.ID)
	case model.Running:
	default:
		return request.Errorf(409, "task %d is %s and has no GPU; carma hold %d keeps it from being launched", t.ID, t.Phase, t.ID)
	}
	if t.GPUs == 0 {
		return request.Errorf(409, "task %d runs without a GPU; there is nothing to suspend", t.ID)
	}
	no := c.noSuspending
	if why := c.loop.State().CannotSuspend(t.ID); no == "" && why.Code != "" {
		no = words.Reason(why)
	}
	if no != "" {
		return request.Errorf(409, "task %d cannot be suspended: %s; carma requeue --hold %d stops it, and after carma release it goes on from its own checkpoint, if it writes one", t.ID, no, t.ID)
	}
	return nil
}

// Resume lets a suspended task resume as soon as there is room.
func (c *Controller) Resume(ctx context.Context, who request.Caller, ref string) (*record.Record, error) {
	return c.alter(ctx, who, rights.Resume, ref, "", func(now units.Instant, t *model.Task, _ *record.Record) (model.Event, *record.Record, error) {
		switch {
		case t.StopReason.Code != "":
			return nil, nil, request.Errorf(409, "task %d is being stopped and does not come back", t.ID)
		case t.Suspension == nil && t.Hold != nil:
			return nil, nil, request.Errorf(409, "task %d is not suspended, it is held; carma release %d lets it go on", t.ID, t.ID)
		case t.Suspension == nil:
			return nil, nil, request.Errorf(409, "task %d is not suspended: it is %s", t.ID, t.Phase)
		}
		return model.ResumeAsked{At: now, Task: t.ID, By: who.Name}, nil, nil
	})
}
