package runner

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
func (r *Runner) Remove(ctx context.Context, who request.Caller, ref string) error {
	rec, err := r.Find(ref)
	if err != nil {
		return err
	}
	if err := r.authz.Authorize(who, rights.Remove, rec, ""); err != nil {
		return err
	}
	return r.remove(ctx, who.Name, rec.ID())
}

// remove deletes finished tasks. It first deletes their records by an event of the loop,
// so that no pending write stores them again, and then their output. If the daemon is
// killed in between, the next one deletes the output.
func (r *Runner) remove(ctx context.Context, by string, ids ...model.TaskID) error {
	err := r.loop.Do(ctx, &loop.Change{Fresh: true, Vital: true, Events: func(now units.Instant) ([]model.Event, []*record.Record, error) {
		for _, id := range ids {
			if t, open := r.loop.State().Task(id); open {
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
		if err := r.Logs.Remove(int64(id)); err != nil {
			return fmt.Errorf("the task is removed, its output is not; the daemon tries again at its next start: %w", err)
		}
	}
	return nil
}

// sweepOutput deletes the output of tasks that were removed. first is the first
// number that this daemon gives: output of that number and above is newer than
// the journal, and is left alone.
func (r *Runner) sweepOutput(ctx context.Context, first model.TaskID) {
	tasks, err := r.Logs.Tasks()
	if err != nil {
		r.Log.Warn().Err(err).Msg("the output of removed tasks cannot be looked for")
		return
	}
	for _, id := range tasks {
		if ctx.Err() != nil {
			return
		}
		if model.TaskID(id) >= first || id < 0 && r.helperOut.Has(id) {
			continue
		}
		if _, err := r.Find(model.TaskID(id).String()); id > 0 && !request.IsNotFound(err) {
			continue
		}
		if err := r.Logs.Remove(id); err != nil {
			r.Log.Warn().Err(err).Int64("task", id).Msg("the output of a removed task could not be deleted")
			continue
		}
		r.Log.Info().Int64("task", id).Msg("deleted the output of a removed task")
	}
}
