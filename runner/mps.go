package runner

import (
	"context"

	"carma/internal/units"
	"carma/mapper/model"
	"carma/runner/gpu"
	"carma/runner/loop"
	"carma/runner/record"
)

// gpusFound lists the GPUs, with how they are shared now.
func (r *Runner) gpusFound(now units.Instant) model.GPUsFound {
	found := model.GPUsFound{At: now}
	told := map[model.GPUID]model.Sharing{}
	for _, g := range r.gpus.Listed() {
		d := r.gpus.Devices()[g.ID]
		g.Sharing, _ = r.sharing.Of(d)
		g.Suspend, g.SuspendAlone, _ = r.suspending.Kind(d, r.sharing.ByMPS(g.Sharing))
		told[g.ID] = g.Sharing
		found.GPUs = append(found.GPUs, g)
	}
	r.sharing.Told(told)
	return found
}

// gpusChanged reports the GPUs, and how they are shared, to the mapper.
func (r *Runner) gpusChanged() {
	r.loop.Post(&loop.Change{Keep: true, Events: func(now units.Instant) ([]model.Event, []*record.Record, error) {
		return []model.Event{r.gpusFound(now)}, nil, nil
	}})
}

// followClient begins to follow an attempt that should be a client of MPS, until stop is
// called. An attempt that continues without its GPUs is killed, and the task runs again
// without MPS.
func (w *worker) followClient(ctx context.Context, id string) (stop func()) {
	gone, forget := w.mps.Follow()
	if gone == nil {
		return forget
	}
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		select {
		case <-ctx.Done():
		case <-gone:
			w.withoutGPU.Store(true)
			w.deps.Log.Warn().Int64("task", int64(w.launch.Task)).Msg("the task could not reach its MPS server and goes on without its GPU; it is ended, and runs again without MPS")
			_ = w.kill(ctx, id)
		}
	}()
	return func() {
		cancel()
		<-over
		forget()
	}
}

// ownsProcess reports whether a process of this machine is in the container.
func (w *worker) ownsProcess(pid int) bool {
	owner := w.deps.Processes.Owner
	if w.deps.Owner != nil {
		owner = w.deps.Owner
	}
	task, attempt, ok := owner(pid)
	return ok && task == w.launch.Task && attempt == w.launch.Attempt
}

func (w *worker) key() gpu.AttemptKey {
	return gpu.AttemptKey{Task: w.launch.Task, Attempt: w.launch.Attempt}
}
