package runner

import (
	"context"
	"time"

	"carma/containers"
	"carma/mapper"
	"carma/mapper/model"
	"carma/mapper/words"
	"carma/runner/attempt"
	"carma/runner/engine"
	"carma/runner/gpu"
	"carma/runner/request"
)

// mayResize refuses another share of the machine for a task that is not in a queue.
func (r *Runner) mayResize(t *model.Task) error {
	switch _, can := engine.As[containers.Resizer](r.Driver); {
	case t.Alive() == nil:
		return nil
	case t.Phase == model.Suspended:
		return request.Errorf(409, "task %d is suspended; its host memory and processors can be changed while it waits or runs: carma resume %d, or carma requeue --hold %d, then update and release it", t.ID, t.ID, t.ID)
	case !t.Resizable():
		return request.Errorf(409, "task %d is %s; its host memory and processors can be changed while it waits or runs", t.ID, t.Phase)
	case !can:
		return request.Errorf(409, "task %d is %s, and on %s the limits of a running container cannot be changed; carma requeue --hold %d, then update and release it", t.ID, t.Phase, r.Driver.Name(), t.ID)
	}
	return nil
}

// canResize refuses a share of the machine that a running task cannot have now.
func (r *Runner) canResize(t *model.Task, ask model.HostAsk) error {
	a := t.Alive()
	if a == nil {
		return nil
	}
	if used, ok := r.hostMem.Now(gpu.AttemptKey{Task: t.ID, Attempt: a.N}); ok && ask.Memory > 0 && used > ask.Memory {
		return request.Errorf(409, "--host-mem %s: task %d uses %s of host memory now; write more than that", ask.Memory, t.ID, used)
	}
	if no := r.loop.State().CannotResize(t.ID, ask); no.Code != "" {
		return request.Errorf(409, "task %d runs on as it is: %s", t.ID, words.Reason(no))
	}
	return nil
}

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
