package runner

import (
	"context"

	"carma/mapper/model"
	"carma/runner/request"
)

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
		if model.TaskID(id) >= first || id < 0 && r.suites.Output().Has(id) {
			continue
		}
		if _, err := r.find.Find(model.TaskID(id).String()); id > 0 && !request.IsNotFound(err) {
			continue
		}
		if err := r.Logs.Remove(id); err != nil {
			r.Log.Warn().Err(err).Int64("task", id).Msg("the output of a removed task could not be deleted")
			continue
		}
		r.Log.Info().Int64("task", id).Msg("deleted the output of a removed task")
	}
}
