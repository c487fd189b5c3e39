package admission

import (
	"carma/containers"
	"carma/mapper/model"
	"carma/mapper/words"
	"carma/runner/engine"
	"carma/runner/gpu"
	"carma/runner/request"
)

// mayResize refuses another share of the machine for a task that is not in a queue.
func (a *Controller) mayResize(t *model.Task) error {
	switch _, can := engine.As[containers.Resizer](a.cfg.Driver); {
	case t.Alive() == nil:
		return nil
	case t.Phase == model.Suspended:
		return request.Errorf(409, "task %d is suspended; its host memory and processors can be changed while it waits or runs: carma resume %d, or carma requeue --hold %d, then update and release it", t.ID, t.ID, t.ID)
	case !t.Resizable():
		return request.Errorf(409, "task %d is %s; its host memory and processors can be changed while it waits or runs", t.ID, t.Phase)
	case !can:
		return request.Errorf(409, "task %d is %s, and on %s the limits of a running container cannot be changed; carma requeue --hold %d, then update and release it", t.ID, t.Phase, a.cfg.Driver.Name(), t.ID)
	}
	return nil
}

// canResize refuses a share of the machine that a running task cannot have now.
func (a *Controller) canResize(t *model.Task, ask model.HostAsk) error {
	alive := t.Alive()
	if alive == nil {
		return nil
	}
	if used, ok := a.cfg.Memory.Now(gpu.AttemptKey{Task: t.ID, Attempt: alive.N}); ok && ask.Memory > 0 && used > ask.Memory {
		return request.Errorf(409, "--host-mem %s: task %d uses %s of host memory now; write more than that", ask.Memory, t.ID, used)
	}
	if no := a.cfg.Loop.State().CannotResize(t.ID, ask); no.Code != "" {
		return request.Errorf(409, "task %d runs on as it is: %s", t.ID, words.Reason(no))
	}
	return nil
}
