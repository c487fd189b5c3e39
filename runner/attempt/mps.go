package attempt

import (
	"context"
)

// followClient begins to follow an attempt that should be a client of MPS, until stop is
// called. An attempt that continues without its GPUs is killed, and the task runs again
// without MPS.
func (a *Attempt) followClient(ctx context.Context, id string) (stop func()) {
	gone, forget := a.mps.Follow()
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
			a.exit.withoutGPU.Store(true)
			a.deps.Log.Warn().Int64("task", int64(a.launch.Task)).Msg("the task could not reach its MPS server and goes on without its GPU; it is ended, and runs again without MPS")
			_ = a.kill(ctx, id)
		}
	}()
	return func() {
		cancel()
		<-over
		forget()
	}
}

// ownsProcess reports whether a process of this machine is in the container.
func (a *Attempt) ownsProcess(pid int) bool {
	owner := a.deps.Processes.Owner
	if a.deps.Owner != nil {
		owner = a.deps.Owner
	}
	task, attempt, ok := owner(pid)
	return ok && task == a.launch.Task && attempt == a.launch.Attempt
}
