package runner

import (
	"context"
	"time"

	"carma/mapper"
	"carma/mapper/model"
	"carma/runner/attempt"
	"carma/runner/request"
)

// resizeLimit is the time that an update waits for the engine; the resize continues
// afterwards.
const resizeLimit = 10 * time.Second

// resized waits until the container of a running task has its new limits, or returns the
// reason why it has not.
func (r *Runner) resized(ctx context.Context, id model.TaskID) error {
	var a *attempt.Attempt
	err := r.loop.Look(ctx, func(s *mapper.State) {
		if t, ok := s.Task(id); ok && t.Phase == model.Running && r.attempts[id] != nil {
			a = r.attempts[id]
		}
	})
	if err != nil || a == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, resizeLimit)
	defer cancel()
	if err := a.Resized(ctx); err != nil {
		return request.Errorf(409, "what is booked for task %d has changed, the limits of its container have not: %v; the same command tries again", id, err)
	}
	return nil
}
