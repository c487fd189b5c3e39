package control

import (
	"context"
	"fmt"

	"carma/internal/failpoint"
	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/loop"
	"carma/runner/record"
	"carma/runner/request"
	"carma/runner/rights"
)

// Remove deletes a finished task and its output.
func (c *Controller) Remove(ctx context.Context, who request.Caller, ref string) error {
	rec, err := c.find.Find(ref)
	if err != nil {
		return err
	}
	if err := c.authz.Authorize(who, rights.Remove, rec, ""); err != nil {
		return err
	}
	return c.RemoveAll(ctx, who.Name, rec.ID())
}

// RemoveAll deletes finished tasks. It first deletes their records by an event of the loop,
// so that no pending write stores them again, and then their output. If the daemon is
// killed in between, the next one deletes the output.
func (c *Controller) RemoveAll(ctx context.Context, by string, ids ...model.TaskID) error {
	err := c.loop.Do(ctx, &loop.Change{Fresh: true, Vital: true, Events: func(now units.Instant) ([]model.Event, []*record.Record, error) {
		for _, id := range ids {
			if t, open := c.loop.State().Task(id); open {
				return nil, nil, request.Errorf(409, "task %d is %s; `carma stop %d` first, or `carma rm -f %d`", id, t.Phase, id, id)
			}
		}
		return []model.Event{model.Removed{At: now, Tasks: ids, By: by}}, nil, nil
	}})
	if err != nil {
		return err
	}
	failpoint.Hit("rm-stored")
	for _, id := range ids {
		if err := c.logs.Remove(int64(id)); err != nil {
			return fmt.Errorf("the task is removed, its output is not; the daemon tries again at its next start: %w", err)
		}
	}
	return nil
}
