package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"carma/containers"
	"carma/internal/failpoint"
	"carma/internal/units"
	"carma/mapper"
	"carma/mapper/model"
	"carma/mapper/words"
	"carma/runner/api"
	"carma/runner/engine"
	"carma/runner/gpu"
	"carma/runner/request"
)

// resizing tracks the requests to set the limits of an attempt's container to the host
// resources allocated to it.
type resizing struct {
	asked chan struct{} // holds one token: the allocation has changed

	mu   sync.Mutex
	want int // number of requests
	done int // number of the last request that is carried out
	err  error
	over chan struct{} // closed when done changes
}

func newResizing() *resizing {
	return &resizing{asked: make(chan struct{}, 1), over: make(chan struct{})}
}

// order asks for the limits to be set. It does not wait.
func (z *resizing) order() {
	z.mu.Lock()
	z.want++
	z.mu.Unlock()
	select {
	case z.asked <- struct{}{}:
	default:
	}
}

func (z *resizing) begin() int {
	z.mu.Lock()
	defer z.mu.Unlock()
	return z.want
}

func (z *resizing) end(upTo int, err error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.done, z.err = upTo, err
	close(z.over)
	z.over = make(chan struct{})
}

// wait returns the result of all requests until now.
func (z *resizing) wait(ctx context.Context) error {
	z.mu.Lock()
	want := z.want
	for z.done < want {
		over := z.over
		z.mu.Unlock()
		select {
		case <-over:
		case <-ctx.Done():
			return nil // the resize continues
		}
		z.mu.Lock()
	}
	defer z.mu.Unlock()
	return z.err
}

// booked returns the task's current request, and the host resources allocated to the
// attempt.
func (w *worker) booked() (api.Submit, model.HostShare) {
	rec, _ := w.deps.Records.Get(w.launch.Task)
	if rec == nil {
		return w.rec.Submit, w.launch.Host
	}
	if a := rec.Task.Last(); a != nil && a.N == w.launch.Attempt {
		return rec.Submit, a.Host
	}
	return w.rec.Submit, w.launch.Host
}

// resize sets the limits of the container to the current allocation.
func (w *worker) resize(ctx context.Context, id string) {
	upTo := w.resizing.begin()
	failpoint.Hit("resize-limits")
	err := w.setMemory(ctx, id, 0)
	if err == nil {
		err = w.setCPUs(ctx, id)
	}
	if err == nil {
		sub, share := w.booked()
		w.deps.Log.Info().Int64("task", int64(w.launch.Task)).Int64("memory", sub.HostMem).Float64("cpus", sub.CPUs).Stringer("booked", share.Memory).Msg("its limits are set anew")
	}
	w.resizing.end(upTo, err)
}

// setMemory sets the memory limit of the container to its share plus more. It refuses a
// limit below the memory in use, because that limit would end the container.
func (w *worker) setMemory(ctx context.Context, id string, more units.Bytes) error {
	var spec containers.Spec
	sub, share := w.booked()
	w.deps.Daemon.Bounds().Bound(&spec, sub, share)
	if spec.Memory == 0 {
		return nil
	}
	to := units.Bytes(spec.Memory) + more
	if used, ok := w.deps.Memory.Now(w.key()); ok && used > to {
		return fmt.Errorf("it uses %s of host memory now, more than %s", used, to)
	}
	return w.limits(ctx, "set the memory of a container", func(ctx context.Context, r containers.Resizer) error {
		return r.SetMemory(ctx, id, int64(to))
	})
}

func (w *worker) setCPUs(ctx context.Context, id string) error {
	var spec containers.Spec
	sub, share := w.booked()
	w.deps.Daemon.Bounds().Bound(&spec, sub, share)
	return w.limits(ctx, "set the processors of a container", func(ctx context.Context, r containers.Resizer) error {
		return r.SetCPUs(ctx, id, spec.CPUs, spec.CPUWeight)
	})
}

func (w *worker) limits(ctx context.Context, what string, set func(context.Context, containers.Resizer) error) error {
	resizer, can := engine.As[containers.Resizer](w.deps.Driver)
	if !can {
		return errors.New("the limits of its container cannot be changed on " + w.deps.Driver.Name())
	}
	err := engine.Within(ctx, engine.KillLimit, what, func(ctx context.Context) error { return set(ctx, resizer) })
	if err != nil && ctx.Err() == nil {
		w.deps.Log.Warn().Err(err).Int64("task", int64(w.launch.Task)).Msg("the limits of its container could not be set")
	}
	return err
}

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
	var z *resizing
	err := r.loop.Look(ctx, func(s *mapper.State) {
		if t, ok := s.Task(id); ok && t.Phase == model.Running && r.workers[id] != nil {
			z = r.workers[id].resizing
		}
	})
	if err != nil || z == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, resizeLimit)
	defer cancel()
	if err := z.wait(ctx); err != nil {
		return request.Errorf(409, "what is booked for task %d has changed, the limits of its container have not: %v; the same command tries again", id, err)
	}
	return nil
}
